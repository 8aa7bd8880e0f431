/** Sign-in with a wrong password: an address that has a user against one that has none. Whoever can tell them apart by time
 *  learns who is a customer. */
import { openIdentity } from '../apiserver/identity/identity.ts'
import { createPasswords } from '../apiserver/identity/passwords.ts'
import { createAccount } from '../db/accounts.ts'
import { createPipeline, requestDurations } from '../kit/http/pipeline.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { silentLog as log } from '../kit/sys/log.ts'
import { openRegistry } from '../kit/sys/metrics.ts'
import { newUuid, systemRandom as random } from '../kit/sys/random.ts'
import { startPostgres } from '../test/database.ts'
import { type Bench, closedLoop } from './runner.ts'

const USERS = 1_000
const CLIENTS = 2

export const bench: Bench = {
  name: 'B10 sign-in timing', question: 'wrong password for a known against an unknown address: 1 tells nothing', subjectName: 'known addresses', peerName: 'unknown addresses', unit: 'refusals', goal: 1,
  async open() {
    const postgres = await startPostgres()
    const { db } = await postgres.createDatabase()
    const identity = await openIdentity({ db, clock, random, log, publicUrl: 'http://127.0.0.1', canSendMail: true })
    const passwordHash = await (await createPasswords(random)).hash('nobody types this password')
    await db.transaction().execute(async (tx) => {
      for (let user = 0; user < USERS; user++) {
        await createAccount(tx, {
          accountId: newUuid(random), userId: newUuid(random), creditId: newUuid(random), accountName: 'Bench', email: `user-${user}@known.example`, name: null, passwordHash,
          emailVerifiedAt: null, now: clock.now(),
        })
      }
    })
    const pipeline = createPipeline({
      ...identity, endpoints: identity.endpoints.filter(({ route }) => route.audience === 'customer'), countRequest: async () => 0, auditRefusal: async () => undefined, translate: (error) => error,
      clock, random, log, durations: requestDurations(openRegistry({ isProcessWide: false })), trustedProxies: [], origins: [], isSecure: false, checkAnswers: false,
    })
    let asked = 0
    const refuse = (domain: string) => async () => {
      const number = asked++
      const response = await pipeline({
        method: 'POST', target: '/v1/auth/login', remoteAddress: `2001:db8:${(number >> 16).toString(16)}:${(number & 0xffff).toString(16)}::1`, signal: new AbortController().signal,
        headers: { 'content-type': 'application/json' }, body: JSON.stringify({ email: `user-${number % USERS}@${domain}`, password: 'not the password' }),
      })
      if (response.status !== 401) throw new Error(`answered ${response.status}`)
    }
    return {
      subject: { run: (seconds) => closedLoop(CLIENTS, seconds, refuse('known.example')) }, peer: { run: (seconds) => closedLoop(CLIENTS, seconds, refuse('unknown.example')) },
      close: () => postgres.stop(),
    }
  },
}
