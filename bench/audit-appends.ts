/** Entries sealed into the chains of accounts as accepted changes do it, with one commit for simultaneous entries of an
 *  account, against inserts of single rows of the same bytes by as many clients. Both wait for the disk. */
import { sql } from 'kysely'
import { appendAudits, verifyAudit } from '../db/audit/index.ts'
import { openGroupCommit } from '../db/kit/group-commit.ts'
import type { UnsealedAuditEntry } from '../domain/audit/entry.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { newUuid, systemRandom as random } from '../kit/sys/random.ts'
import { createAccount } from '../test/accounts.ts'
import { createDatabase } from './postgres.ts'
import { closedLoop, type Round, type World } from './runner.ts'

const CLIENTS = { full: 64, short: 2 }
const MICROSECONDS = 1_000
/** 80,000 entries a second. */
export const VERIFY_LIMITS = { 'microseconds to verify an entry': 12.5, 'entries too few or too many': 0 }
export const VERIFY_HELD_BY =
  'verifying takes one thread 16 microseconds of processor time an entry: half of it parses the entry, writes it in ' +
  'its canonical form and hashes it, 40 % is the way of the rows from PostgreSQL.'

export async function openAppends(round: Round, count: number): Promise<World> {
  const database = await createDatabase()
  const { db } = database
  const accounts: string[] = []
  for (let number = 0; number < count; number++) accounts.push(await createAccount(db))
  const append = openGroupCommit(db, async (tx, entries: readonly UnsealedAuditEntry[]) => {
    await appendAudits(tx, entries, { clock, random })
    return entries.map(() => undefined)
  })
  await sql`create table bare (id bigint generated always as identity primary key, body text not null)`.execute(db)
  let appended = 0
  const facts = { 'microseconds to verify an entry': 0, 'entries too few or too many': 0 }
  return {
    subject: {
      run: (seconds) =>
        closedLoop(CLIENTS[round], seconds, async () => {
          const accountId = accounts[appended++ % count] ?? ''
          await append(accountId, entryOf(accountId))
        }),
    },
    peer: {
      run: (seconds) =>
        closedLoop(CLIENTS[round], seconds, async () => {
          const body = JSON.stringify(entryOf(accounts[0] ?? ''))
          await sql`insert into bare (body) values (${body})`.execute(db)
        }),
    },
    async finish() {
      const begin = clock.monotonicMilliseconds()
      let verified = 0
      for (const account of accounts) {
        const { status, headSequence } = await verifyAudit(db, account, clock)
        if (status !== 'verified') throw new Error(`the chain of ${account} is ${status}`)
        verified += headSequence
      }
      const milliseconds = clock.monotonicMilliseconds() - begin
      facts['microseconds to verify an entry'] = Number(((milliseconds * MICROSECONDS) / verified).toFixed(1))
      facts['entries too few or too many'] = verified - appended
    },
    facts: () => facts,
    close: () => database.drop(),
  }
}

const entryOf = (accountId: string): UnsealedAuditEntry => ({
  account_id: accountId,
  actor_email: 'bench@example.com',
  actor_kind: 'user',
  user_id: null,
  staff_id: null,
  token_id: null,
  token_name: null,
  action: 'server.create',
  resource_type: 'server',
  resource_id: newUuid(random),
  detail: { hostname: 'bench' },
  outcome: 'success',
  source_ip: '192.0.2.1',
  user_agent: 'bench',
  request_id: newUuid(random),
  changes: [],
})
