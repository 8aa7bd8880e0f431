/** Letters typed into the filter of a list of 10 000 loaded servers, each until the rows that it finds are in the
 *  document, against the same letters in a list of 200. */
import type { Page } from 'playwright-core'
import { loadAll, openPortal } from './portal.ts'
import { type Bench, median, percentile, type Side } from './runner.ts'

const SERVERS = { full: 10_000, short: 300 }
const FEW = 200
/** What is in the field after each letter: every one finds another number of servers. */
const TEXTS = ['server-1', 'server-12', 'server-123', 'server-12', 'server-1', '']
const LETTER = 'ms of a letter, median'
const FIRST_LETTER = 'ms of the first letter'

export const bench: Bench = {
  name: 'B83 filter',
  question: `letters typed into the filter of ${SERVERS.full} servers`,
  subjectName: `a list of ${SERVERS.full}`,
  peerName: `a list of ${FEW}`,
  unit: 'letters',
  goal: 0.5,
  limits: { [FIRST_LETTER]: 400, [LETTER]: 400 },
  heldBy:
    'the list of 200 takes nearly as long for a letter: it is drawn by the processor, which others use too. The ' +
    'first letter finds the texts of all servers; later letters search them.',
  tier: 'browser',
  async open(round) {
    const portal = await openPortal([SERVERS[round], FEW])
    const [many, few] = portal.cloud.accounts
    if (many === undefined || few === undefined) throw new Error('two accounts were opened')
    const [{ page: long }, { page: short }] = [await portal.open(many), await portal.open(few)]
    await loadAll(long, SERVERS[round])
    await loadAll(short, FEW)
    const durations: number[] = []
    const typing = (page: Page, taken: number[]): Side => ({
      async run(seconds) {
        await page.bringToFront()
        const own = await page.evaluate<readonly number[]>(typeFor(seconds))
        taken.push(...own)
        return { units: own.length, seconds: own.reduce((sum, each) => sum + each, 0) / 1_000 }
      },
    })
    return {
      subject: typing(long, durations),
      peer: typing(short, []),
      facts: () => ({
        [FIRST_LETTER]: Math.round(durations[0] ?? Number.NaN),
        [LETTER]: Math.round(median(durations)),
        'ms of a letter, p99': Math.round(percentile(durations, 0.99)),
      }),
      close: () => portal.close(),
    }
  },
}

/** In the page: milliseconds of each letter. React sees a value that its own setter did not write. */
const typeFor = (seconds: number): string => `(async () => {
  const field = document.querySelector('.search input')
  const { set } = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value')
  const rows = () => document.querySelector('.table').getAttribute('aria-rowcount')
  const taken = []
  const until = performance.now() + ${seconds * 1_000}
  do {
    for (const text of ${JSON.stringify(TEXTS)}) {
      const [before, begin] = [rows(), performance.now()]
      set.call(field, text)
      field.dispatchEvent(new Event('input', { bubbles: true }))
      while (rows() === before) await new Promise(requestAnimationFrame)
      taken.push(performance.now() - begin)
    }
  } while (performance.now() < until)
  return taken
})()`
