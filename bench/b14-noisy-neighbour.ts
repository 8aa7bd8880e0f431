/** The 99th percentile of a victim's lists over HTTP while another account floods: ten times what its token may, and
 *  sign-ins with wrong passwords, against the same lists alone. The victim's requests are sent at a steady pace,
 *  regardless of how long the answers take, so that a delay counts for every waiting request. */
import { startServer } from '../kit/http/server.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { silentLog as log } from '../kit/sys/log.ts'
import { newUuid, systemRandom as random } from '../kit/sys/random.ts'
import { Server } from '../resources/server/index.ts'
import { openCloud, serverSpec } from './cloud.ts'
import { floodFrom } from './load.ts'
import { type Bench, percentile, type Side } from './runner.ts'

const SERVERS = 20
const PACE_MILLISECONDS = 10
/** Ten times the 600 a minute that a token may. */
const FLOOD_PER_SECOND = 100
const SIGN_INS_PER_SECOND = 20
const EXCESS = 'share of the flood that was answered'

export const bench: Bench = {
  name: 'B14 noisy neighbour',
  question: "p99 of a victim's lists while another account floods with lists and sign-ins",
  subjectName: 'beside the flood',
  peerName: 'alone',
  unit: 'victims',
  goal: 0.67,
  limits: { [EXCESS]: 0.5 },
  heldBy: 'API, PostgreSQL, the flood and the hashing of passwords share two cores here.',
  tier: 'database',
  async open(round) {
    const cloud = await openCloud([], { accounts: 2 })
    const [victim, flooder] = cloud.accounts
    if (victim === undefined || flooder === undefined) throw new Error('two accounts were opened')
    for (let number = 0; number < SERVERS; number++)
      for (const { namespace } of cloud.accounts)
        await cloud.store.create(Server, { metadata: { name: newUuid(random), namespace }, spec: serverSpec(number) })
    await cloud.startCaches()
    const api = await startServer({ host: '127.0.0.1', port: 0, service: cloud.app.customers, clock, random, log })
    const origin = `http://127.0.0.1:${api.port}`
    const answered = { ok: 0, refused: 0 }
    let turn = 0

    /** The units are 1000 / p99, so that a shorter wait is more. */
    async function lists(seconds: number): Promise<{ units: number; seconds: number }> {
      const durations: number[] = []
      const begin = clock.monotonicMilliseconds()
      const pending: Promise<void>[] = []
      for (let at = begin; at < begin + Math.max(seconds * 1_000, PACE_MILLISECONDS); at += PACE_MILLISECONDS) {
        await clock.sleep(Math.max(0, at - clock.monotonicMilliseconds()))
        const token = victim?.tokens[turn++ % victim.tokens.length]
        pending.push(
          fetch(`${origin}/v1/servers?limit=20`, { headers: { authorization: `Bearer ${token}` } }).then(
            async (answer) => {
              await answer.arrayBuffer()
              if (answer.status !== 200) throw new Error(`the victim got ${answer.status}`)
              durations.push(clock.monotonicMilliseconds() - at)
            },
          ),
        )
      }
      await Promise.all(pending)
      return { units: 1, seconds: percentile(durations, 0.99) / 1_000 }
    }
    const subject: Side = {
      async run(seconds) {
        const [token = ''] = flooder.tokens
        const flood = floodFrom({
          origin,
          token,
          seconds,
          listsPerSecond: round === 'full' ? FLOOD_PER_SECOND : 10,
          signInsPerSecond: round === 'full' ? SIGN_INS_PER_SECOND : 1,
        })
        const measured = await lists(seconds)
        const { ok, refused } = await flood
        answered.ok += ok
        answered.refused += refused
        return measured
      },
    }
    return {
      subject,
      peer: { run: lists },
      facts: () => ({
        [EXCESS]: (answered.ok / (answered.ok + answered.refused)).toFixed(2),
        'requests of the flood': answered.ok + answered.refused,
      }),
      async close() {
        await api.stop(1_000)
        await cloud.close()
      },
    }
  },
}
