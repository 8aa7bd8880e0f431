/** Requests that strangers may send to identity, for benchmarks that compare the duration of an answer about an
 *  existing person with one about nobody. */
import { openIdentity } from '../apiserver/identity/identity.ts'
import { IDENTITY_NOUNS } from '../apiserver/nouns.ts'
import { createPasswords } from '../apiserver/identity/passwords.ts'
import { createAccount } from '../db/account/index.ts'
import type { Database } from '../db/kit/open.ts'
import { ADMIN, openCore } from '../embedded/kubernetes/core/core.ts'
import { memoryStorage } from '../embedded/kubernetes/storage/memory.ts'
import { createPipeline, requestDurations } from '../kit/http/pipeline.ts'
import { openClient } from '../kit/kube/client.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { silentLog as log } from '../kit/sys/log.ts'
import { openRegistry } from '../kit/sys/metrics.ts'
import { newUuid, systemRandom as random } from '../kit/sys/random.ts'
import { createDatabase } from './postgres.ts'
import { closedLoop, type Round, type Side } from './runner.ts'

const USERS = { full: 1_000, short: 10 }
const CLIENTS = 2

export interface Member {
  readonly accountId: string
  readonly userId: string
  readonly email: string
}

export interface Strangers {
  readonly db: Database
  /** People that have users. */
  readonly members: readonly Member[]
  /** Sends requests repeatedly, each from another address and about the next number; throws when the answer differs
   *  from the given status. */
  asking(
    status: number,
    request: (number: number) => { readonly method: 'GET' | 'POST'; readonly path: string; readonly body?: object },
  ): Side
  close(): Promise<void>
}

export async function openStrangers(round: Round): Promise<Strangers> {
  const database = await createDatabase()
  const { db } = database
  const core = await openCore({ clock, random, log, storage: memoryStorage() })
  const identity = await openIdentity({
    db,
    clock,
    random,
    log,
    publicUrl: 'http://127.0.0.1',
    canSendMail: true,
    store: openClient({ transport: (request) => core.handle(request, ADMIN), fieldManager: 'bench', clock, random }),
  })
  const passwordHash = await (await createPasswords(random)).hash('nobody types this password')
  const members = Array.from({ length: USERS[round] }, (_, number) => ({
    accountId: newUuid(random),
    userId: newUuid(random),
    email: `user-${number}@known.example`,
  }))
  await db.transaction().execute(async (tx) => {
    for (const member of members)
      await createAccount(tx, {
        ...member,
        creditId: newUuid(random),
        accountName: 'Bench',
        name: null,
        passwordHash,
        emailVerifiedAt: null,
        now: clock.now(),
      })
  })
  const pipeline = createPipeline({
    ...identity,
    endpoints: IDENTITY_NOUNS.flatMap((noun) => noun.endpoints(identity.parts)).filter(
      ({ route }) => route.audience === 'customer',
    ),
    countRequest: async () => 0,
    auditRefusal: async () => undefined,
    translate: (error) => error,
    clock,
    random,
    log,
    durations: requestDurations(openRegistry({ isProcessWide: false })),
    trustedProxies: [],
    origins: [],
    isSecure: false,
    checkAnswers: false,
  })
  let asked = 0
  return {
    db,
    members,
    asking: (status, request) => ({
      run: (seconds) =>
        closedLoop(CLIENTS, seconds, async () => {
          const number = asked++
          const { method, path, body } = request(number)
          const response = await pipeline({
            method,
            target: path,
            remoteAddress: `2001:db8:${(number >> 16).toString(16)}:${(number & 0xffff).toString(16)}::1`,
            signal: new AbortController().signal,
            headers: body === undefined ? {} : { 'content-type': 'application/json' },
            ...(body === undefined ? {} : { body: JSON.stringify(body) }),
          })
          if (response.status !== status) throw new Error(`answered ${response.status}`)
        }),
    }),
    close: () => database.drop(),
  }
}
