/** From the navigation to the first rows of a list of 10 000 servers, with an empty cache; against the same page of an
 *  account that has one server. */
import { openPortal, openServers } from './portal.ts'
import { type Bench, median, repeat } from './runner.ts'

const SERVERS = { full: 10_000, short: 250 }
const FIRST_ROWS = 'ms to the first rows, median'

export const bench: Bench = {
  name: 'B81 first rows',
  question: `from the navigation to the first rows of ${SERVERS.full} servers`,
  subjectName: 'first rows of many',
  peerName: 'the same page with one server',
  unit: 'pages',
  goal: 0.67,
  limits: { [FIRST_ROWS]: 1_500 },
  heldBy:
    'the first page of a list has 100 rows, which are drawn at once, each with a checkbox, a link and a button of ' +
    'react-aria; the other list has one. Page, API and PostgreSQL share two cores.',
  tier: 'browser',
  async open(round) {
    const portal = await openPortal([SERVERS[round], 1])
    const [many, one] = portal.cloud.accounts
    if (many === undefined || one === undefined) throw new Error('two accounts were opened')
    const seconds: number[] = []
    const visit = async (account: typeof many): Promise<number> => {
      const { page, close } = await portal.open(account)
      const taken = await openServers(page)
      await close()
      return taken
    }
    /** Tabs are opened and closed beside what is measured. */
    const visits = (account: typeof many, taken: number[]) => async (wanted: number) => {
      const from = taken.length
      await repeat(1, wanted, async () => void taken.push(await visit(account)))
      const own = taken.slice(from)
      return { units: own.length, seconds: own.reduce((sum, each) => sum + each, 0) }
    }
    return {
      subject: { run: visits(many, seconds) },
      peer: { run: visits(one, []) },
      facts: () => ({ [FIRST_ROWS]: Math.round(median(seconds) * 1_000) }),
      close: () => portal.close(),
    }
  },
}
