import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { Renewal } from "../src/renewal";

test("changes at once are one renewal, and one of the model is one for all", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const renewed: boolean[] = [];
  const renewal = new Renewal(async (goesOn) => void renewed.push(goesOn));
  renewal.soon(true);
  renewal.soon(false);
  mock.timers.tick(150);
  renewal.soon(true);
  mock.timers.tick(299);
  assert.deepEqual(renewed, []);
  mock.timers.tick(1);
  renewal.soon(true);
  mock.timers.tick(300);
  assert.deepEqual(renewed, [false, true]);
  renewal.soon(true);
  void renewal.now();
  void renewal.now();
  mock.timers.tick(300);
  assert.deepEqual(renewed, [false, true, true], "at once, and once");
  mock.timers.reset();
});
