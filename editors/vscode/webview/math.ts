/** Formulas as MathML. Loaded with the first formula. */
import temml from "temml";

/** Shows a formula in an element; throws if it is not one. It can load and link nothing, and sets no style attribute. */
function render(tex: string, element: HTMLElement, displayMode: boolean): void {
  temml.render(tex, element, { displayMode, throwOnError: true, trust: false, maxExpand: 200 });
}

(globalThis as unknown as { renderMath: typeof render }).renderMath = render;
