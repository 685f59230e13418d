/** Work: a job board with a cursor, vacancies as XML, staff from a tap, and members of a club from a module. */
import { type Dice, dateOf, fewerOnWeekends, type Kind } from './population.ts';

const TITLES = ['Nurse', 'Welder', 'Data engineer', 'Teacher', 'Accountant', 'Driver', 'Cook', 'Planner'];
const FIRMS = ['Hafen AG', 'Nordwind', 'Klinik am See', 'Lotse', 'Weber & Sohn', 'Stadtwerke'];
const CITIES = ['Bremen', 'Rostock', 'Kiel', 'Hamburg', 'Lübeck', 'Emden'];
const FIRST = ['Ada', 'Grace', 'Emmy', 'Hedy', 'Katherine', 'Mary', 'Joan', 'Lise', 'Maria', 'Rosa'];
const LAST = ['Berg', 'Lind', 'Holm', 'Dahl', 'Voss', 'Krog', 'Sund', 'Ries', 'Thies', 'Wolf'];

/** Half of the jobs name a salary. Fewer are listed on weekends. */
export const jobBoard: Kind = {
  id: 'job-board',
  size: 5_000,
  churn: 0.03,
  rhythm: fewerOnWeekends(0.06),
  make: (dice, serial, day) => ({
    id: `j${serial}`,
    title: dice.pick(TITLES),
    company: dice.pick(FIRMS),
    city: dice.pick(CITIES),
    salary: dice.chance(0.45) ? dice.whole(28, 95) * 1_000 : null,
    remote: dice.chance(0.25),
    postedAt: dateOf(day),
    url: `https://jobs.example/${serial}`,
    tags: dice.chance(0.5) ? [dice.pick(['full time', 'part time'])] : [],
  }),
  live(row, dice) {
    if (dice.chance(0.01)) row.salary = dice.whole(28, 95) * 1_000;
  },
};

export const vacancies: Kind = {
  id: 'vacancies',
  size: 260,
  churn: 0.05,
  rhythm: fewerOnWeekends(0.04),
  make: (dice, serial, day) => ({
    id: String(serial),
    title: dice.pick(TITLES),
    employer: dice.pick(FIRMS),
    hours: dice.pick([20, 30, 35, 37.5, 40]),
    ...(dice.chance(0.7) ? { closes: dateOf(day + dice.whole(7, 60)) } : {}),
    link: `https://vacancies.example/${serial}`,
  }),
  live() {},
};

function person(dice: Dice, serial: number) {
  const first = dice.pick(FIRST);
  const last = dice.pick(LAST);
  return { name: `${first} ${last}`, email: `${first}.${last}${serial}@example.org`.toLowerCase() };
}

export const people: Kind = {
  id: 'people',
  size: 320,
  churn: 0.003,
  make(dice, serial, day) {
    const { name, email } = person(dice, serial);
    return {
      id: String(serial),
      name,
      email: dice.chance(0.97) ? email : null,
      // Some are written as a plain number, some with signs.
      phone: dice.chance(0.6) ? dice.pick(['+49 421 ', '0421']) + dice.whole(10_000, 99_999) : null,
      hours: dice.pick([20, 32, 40]),
      manager: dice.chance(0.1) ? null : String(dice.whole(1, 40)),
      hiredOn: dateOf(day - dice.whole(30, 4_000)),
      address: { city: dice.pick(CITIES), postcode: String(dice.whole(10_000, 28_999)) },
    };
  },
  live(row, dice) {
    if (dice.chance(0.01)) row.phone = `0421${dice.whole(10_000, 99_999)}`;
  },
};

export const members: Kind = {
  id: 'members',
  size: 900,
  churn: 0.002,
  make(dice, serial, day) {
    const { name, email } = person(dice, serial);
    return {
      id: `m-${serial}`,
      name,
      email,
      fee: dice.pick([24, 36, 49.5, 60]),
      since: dateOf(day - dice.whole(0, 3_000)),
      newsletter: dice.chance(0.6),
      ...(dice.chance(0.4) ? { birthday: dateOf(-dice.whole(7_000, 25_000)) } : {}),
      ...(dice.chance(0.04) ? { remark: 'moved abroad' } : {}),
    };
  },
  live(row, dice) {
    if (dice.chance(0.005)) row.newsletter = row.newsletter !== true;
  },
};
