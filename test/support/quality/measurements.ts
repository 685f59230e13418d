/** Measurements: weather of stations, exchange rates as CSV, and departures that a station pushes. */
import { type Dice, dateOf, type Kind, timeOf } from './population.ts';

const tenths = (value: number) => Math.round(value * 10) / 10;
/** Warm in the middle of the year. */
const season = (day: number) => 9 - 9 * Math.cos((2 * Math.PI * (day + 5)) / 365);

/** Every value is new every day. On a calm day few stations report gusts, on a windy day most of them do. */
export const weather: Kind = {
  id: 'weather',
  size: 220,
  churn: 0,
  make: (dice, serial, day) =>
    measured(
      {
        id: `S${10_000 + serial}`,
        station: `Station ${serial}`,
        position: { lat: tenths(dice.whole(470, 550) / 10), lon: tenths(dice.whole(60, 150) / 10) },
      },
      dice,
      day,
    ),
  live(row, dice, day) {
    Object.assign(row, measured(row, dice, day));
  },
};

function measured<Of extends object>(row: Of, dice: Dice, day: number) {
  const windy = 0.5 + 0.15 * Math.sin(day * 1.7);
  return {
    ...row,
    temperature: tenths(season(day) + 4 * dice.normal()),
    humidity: dice.whole(30, 100),
    // A sensor fails now and then.
    pressure: dice.chance(0.02) ? null : tenths(1_013 + 8 * dice.normal()),
    rain: dice.chance(0.6) ? 0 : tenths(dice.next() * 12),
    gust: dice.chance(windy) ? tenths(30 + dice.next() * 40) : null,
    observedAt: timeOf(day, 6),
  };
}

const CURRENCY = (serial: number) =>
  [Math.floor(serial / 26), serial % 26].map((at) => String.fromCharCode(65 + (at % 26))).join('');

export const rates: Kind = {
  id: 'rates',
  size: 160,
  churn: 0,
  make: (dice, serial, day) => ({
    id: `X${CURRENCY(serial)}`,
    rate: Number(Math.exp(2.5 * dice.normal()).toPrecision(5)),
    asOf: dateOf(day),
    // Some currencies are not traded on a given day.
    ...(dice.chance(0.9) ? { volume: dice.whole(0, 90_000) } : {}),
  }),
  live(row, dice, day) {
    row.rate = Number((Number(row.rate) * (1 + 0.004 * dice.normal())).toPrecision(5));
    row.asOf = dateOf(day);
    if (dice.chance(0.9)) row.volume = dice.whole(0, 90_000);
    else delete row.volume;
  },
};

/** All departures of a day are new. Platforms are numbers, some with a letter. */
export const departures: Kind = {
  id: 'departures',
  size: 300,
  churn: 1,
  make: (dice, serial, day) => ({
    id: `d${serial}`,
    line: `${dice.pick(['RE', 'RB', 'S', 'IC'])} ${dice.whole(1, 99)}`,
    to: dice.pick(['Bremen', 'Kiel', 'Rostock', 'Emden']),
    at: timeOf(day, dice.whole(4, 23)),
    delay: dice.chance(0.7) ? Math.max(0, Math.round(4 * dice.normal())) : null,
    platform: dice.chance(0.2) ? `${dice.whole(1, 14)}a` : String(dice.whole(1, 14)),
    canceled: dice.chance(0.02),
  }),
  live() {},
};
