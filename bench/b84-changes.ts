/** A change by REST that an open list shows: from the request until the row has the new title, against a client that
 *  reads the same stream of changes and shows nothing. The page and the client wait for changes of the same kind, one
 *  after the other. */
import { systemClock as clock } from '../kit/sys/clock.ts'
import { newUuid, systemRandom as random } from '../kit/sys/random.ts'
import { Server } from '../resources/server/index.ts'
import { LIVE, openPortal, openServers, readChanges } from './portal.ts'
import { type Bench, median, percentile, type Side } from './runner.ts'

/** They take turns, because the service sends a state of one item at most every quarter of a second. */
const SERVERS = 50
const LATENCY = 'ms until the page shows it, median'

export const bench: Bench = {
  name: 'B84 changes',
  question: 'changes by REST that an open list shows',
  subjectName: 'the page',
  peerName: 'a client of GET /v1/changes',
  unit: 'changes',
  goal: 0.5,
  limits: { [LATENCY]: 500 },
  tier: 'browser',
  async open() {
    const portal = await openPortal([SERVERS])
    const { cloud, url } = portal
    const { items: servers } = await cloud.store.list(Server, { namespace: cloud.namespace })
    const { page } = await portal.open(cloud)
    const shown = openSightings()
    await page.exposeBinding('sighted', (_source, text: string) => shown.note(text))
    await openServers(page)
    await page.getByRole('button', { name: LIVE }).waitFor()
    await page.evaluate(REPORT_TEXTS)
    const heard = openSightings()
    const stop = await readChanges(portal, (data) => heard.note(data))
    let turn = 0
    /** Milliseconds from the request until its title is sighted. */
    const change = async (sightings: Sightings): Promise<number> => {
      const title = newUuid(random)
      const sighted = sightings.of(title)
      const begin = clock.monotonicMilliseconds()
      const answer = await fetch(`${url}/v1/servers/${servers[turn % SERVERS]?.metadata.name}`, {
        method: 'PATCH',
        headers: {
          authorization: `Bearer ${cloud.tokens[turn++ % cloud.tokens.length]}`,
          'content-type': 'application/json',
        },
        body: JSON.stringify({ title }),
      })
      const text = await answer.text()
      if (answer.status !== 200) throw new Error(`the change got ${answer.status}: ${text}`)
      await sighted
      return clock.monotonicMilliseconds() - begin
    }
    const changing = (sightings: Sightings, taken: number[]): Side => ({
      async run(seconds) {
        const own: number[] = []
        const until = clock.monotonicMilliseconds() + seconds * 1_000
        do own.push(await change(sightings))
        while (clock.monotonicMilliseconds() < until)
        taken.push(...own)
        return { units: own.length, seconds: own.reduce((sum, each) => sum + each, 0) / 1_000 }
      },
    })
    const [ofPage, ofClient]: [number[], number[]] = [[], []]
    return {
      subject: changing(shown, ofPage),
      peer: changing(heard, ofClient),
      facts: () => ({
        [LATENCY]: median(ofPage).toFixed(1),
        'ms until the page shows it, p99': percentile(ofPage, 0.99).toFixed(1),
        'ms until the client has it, median': median(ofClient).toFixed(1),
      }),
      async close() {
        stop()
        await portal.close()
      },
    }
  },
}

interface Sightings {
  /** Resolves when the title has been sighted. */
  of(title: string): Promise<void>
  note(text: string): void
}

function openSightings(): Sightings {
  let [wanted, resolve] = ['', () => {}]
  return {
    of(title) {
      wanted = title
      return new Promise((done) => (resolve = done))
    },
    note(text) {
      if (wanted !== '' && text.includes(wanted)) resolve()
    },
  }
}

/** In the page: calls `sighted` with each text that becomes another one. */
const REPORT_TEXTS = `new MutationObserver((records) => {
  for (const { target } of records) sighted(target.textContent)
}).observe(document.querySelector('tbody'), { subtree: true, childList: true, characterData: true })`
