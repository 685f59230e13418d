/** Loaded before a program (`--import`), shifts its clock by `CLOCK_SHIFT_MS`. */
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
