/** Shops: articles of an API in pages, offers of a web page, and parts that a warehouse pushes. */
import { type Dice, dateOf, type Kind, timeOf } from './population.ts';

const BRANDS = ['Nordlys', 'Fjell', 'Baltica', 'Ostra', 'Kestrel', 'Marlow', 'Tern & Co'];
const THINGS = ['lamp', 'chair', 'kettle', 'shelf', 'rug', 'mirror', 'desk', 'vase', 'clock', 'stool'];
const CATEGORIES = ['living', 'kitchen', 'office', 'garden', 'sale'];

const thing = (dice: Dice) => `${dice.pick(BRANDS)} ${dice.pick(THINGS)} ${dice.whole(10, 99)}`;
/** A digit or none: half of the ratings are whole numbers in JSON, such as 4. */
const rating = (dice: Dice) => Math.round(dice.whole(2, 10)) / 2;
const cents = (price: number) => Math.max(0.01, Math.round(price * 100) / 100);

/** A third of the articles are reduced, and one in a hundred has a field that the others do not have. */
export const shop: Kind = {
  id: 'shop',
  size: 5_000,
  churn: 0.004,
  make: (dice, serial, day) => ({
    id: `art-${100_000 + serial}`,
    name: thing(dice),
    price: dice.price(45),
    oldPrice: dice.chance(0.3) ? dice.price(70) : null,
    currency: 'EUR',
    stock: dice.chance(0.06) ? null : dice.whole(0, 250),
    ...(dice.chance(0.92) ? { brand: dice.pick(BRANDS) } : {}),
    category: dice.pick(CATEGORIES),
    ...(dice.chance(0.8) ? { rating: rating(dice) } : {}),
    ean: String(4_000_000_000_000 + Math.floor(dice.next() * 999_999_999)),
    url: `https://shop.example/articles/${100_000 + serial}`,
    updatedAt: timeOf(day, dice.whole(0, 23)),
    ...(dice.chance(0.01) ? { warranty: `${dice.whole(2, 10)} years` } : {}),
  }),
  live(row, dice, day) {
    if (!dice.chance(0.05)) return;
    row.price = cents(Number(row.price) * (1 + 0.06 * dice.normal()));
    row.oldPrice = dice.chance(0.3) ? cents(Number(row.price) * 1.3) : null;
    if (row.stock !== null) row.stock = dice.whole(0, 250);
    row.updatedAt = timeOf(day, dice.whole(0, 23));
  },
};

/** Offers end within days, so that a third of the page is new every day. */
export const bargains: Kind = {
  id: 'bargains',
  size: 140,
  churn: 0.3,
  make: (dice, serial, day) => ({
    id: String(7_000 + serial),
    name: thing(dice),
    price: dice.price(20),
    ...(dice.chance(0.75) ? { seller: dice.pick(BRANDS) } : {}),
    ends: dateOf(day + dice.whole(1, 6)),
    url: `https://bargains.example/o/${7_000 + serial}`,
  }),
  live(row, dice) {
    if (dice.chance(0.1)) row.price = cents(Number(row.price) * 0.9);
  },
};

export const inventory: Kind = {
  id: 'inventory',
  size: 600,
  churn: 0.002,
  make: (dice, serial) => ({
    id: `P${serial}`,
    quantity: dice.whole(0, 4_000),
    cost: dice.price(3),
    // Some bins are only a number, as text.
    bin: dice.chance(0.15) ? String(dice.whole(1, 40)) : `${dice.pick(['A', 'B', 'C'])}${dice.whole(1, 40)}`,
    discontinued: dice.chance(0.08),
    supplier: { name: dice.pick(BRANDS), country: dice.pick(['DE', 'NO', 'PL', 'SE']) },
    ...(dice.chance(0.03) ? { note: 'count again' } : {}),
  }),
  live(row, dice) {
    if (dice.chance(0.4)) row.quantity = Math.max(0, Number(row.quantity) + dice.whole(-60, 60));
    if (dice.chance(0.01)) row.discontinued = row.discontinued !== true;
  },
};
