/** Formulas in answers: shown as they are written until they are near the viewport, and then as formulas. */
import { whenNear } from "./code";

/** Longer ones stay as they are written. */
const MAX = 4000;

type Render = (tex: string, element: HTMLElement, isDisplay: boolean) => void;

const script = document.currentScript as HTMLScriptElement | null;
let loading: Promise<Render | undefined> | undefined;

/** Shows the finished formulas in an element once they are near. */
export function finishFormulas(within: Element): void {
  for (const formula of within.querySelectorAll<HTMLElement>(".math:not([data-finished])")) {
    formula.dataset["finished"] = "";
    whenNear(formula, () => void show(formula));
  }
}

async function show(formula: HTMLElement): Promise<void> {
  const { tex = "" } = formula.dataset;
  const source = formula.textContent;
  loading ??= load();
  const render = tex.length > MAX ? undefined : await loading;
  try {
    render?.(tex, formula, formula.classList.contains("display"));
  } catch {
    formula.textContent = source; // text that is not a formula stays as written
  }
}

function load(): Promise<Render | undefined> {
  return new Promise((resolve) => {
    const element = document.createElement("script");
    element.nonce = script?.nonce ?? "";
    element.src = `${script?.dataset["dist"]}/math.js`;
    element.onload = () => resolve((globalThis as unknown as { renderMath?: Render }).renderMath);
    element.onerror = () => resolve(undefined);
    document.head.append(element);
  });
}
