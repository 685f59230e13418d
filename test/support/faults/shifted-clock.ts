/** Loaded before a program (`--import`): its clock is off by `CLOCK_SHIFT_MS`, as on a machine whose clock is wrong. */
const RealDate = Date;
const shiftMs = Number(process.env.CLOCK_SHIFT_MS);

class ShiftedDate extends RealDate {
  constructor(...given: unknown[]) {
    if (given.length === 0) super(RealDate.now() + shiftMs);
    else super(...(given as [number]));
  }

  static override now(): number {
    return RealDate.now() + shiftMs;
  }
}

globalThis.Date = ShiftedDate as DateConstructor;
