/** Money under crashes: months in virtual time, with processes that die at any statement of the meter, the invoice run
 *  and the push, a payment processor that fails in every way, and events that come late, twice and in any order. At
 *  rest the ledger is what was used, and the processor has what the ledger says: each invoice once, charged once. */
import type { KyselyPlugin } from 'kysely'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { compareLedger } from '../../../../controllers/nouns/billing/comparison.ts'
import { invoiceMonths } from '../../../../controllers/nouns/billing/invoicing.ts'
import { processPayments, upkeep } from '../../../../controllers/nouns/billing/payments.ts'
import { addCredit } from '../../../../db/account/index.ts'
import {
  countPaymentEvents,
  countPushes,
  countWaiting,
  readPayer,
  recordPaymentCustomer,
  storePaymentEvent,
} from '../../../../db/billing/index.ts'
import type { Database } from '../../../../db/kit/open.ts'
import { Unavailable } from '../../../../domain/problem.ts'
import { totalOf } from '../../../../embedded/fake-payments/processor.ts'
import { ProcessorRefusal } from '../../../../integrations/payments/processor.ts'
import { silentLog as log } from '../../../../kit/sys/log.ts'
import { newUuid, systemRandom } from '../../../../kit/sys/random.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Fault, openTestPayments } from '../../../payments.ts'
import { type Handle, hoursOf, openMeteredCloud } from './metered-cloud.ts'
import { randomOf } from './random.ts'

const database = useDatabase()
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const START = Date.parse('2026-01-30T00:00:00Z')
const END = Date.parse('2026-04-02T05:00:00Z')
const MONTHLY_CENTS = 4_001
/** The processor charges nothing smaller. */
const SMALLEST_CHARGE_CENTS = 50
const FAULTS: readonly Fault[] = ['lost', 'unanswered', 'busy', 'conflict', 'broken', 'broken_after']

class Crash extends Error {}

/** A process that can be killed: from then on none of its statements begins, or has its result seen. */
function killable(db: Database) {
  let statementsLeft = Number.POSITIVE_INFINITY
  const step = () => {
    statementsLeft -= 1
    if (statementsLeft < 0) throw new Crash()
  }
  const plugin: KyselyPlugin = {
    transformQuery({ node }) {
      step()
      return node
    },
    async transformResult({ result }) {
      step()
      return result
    },
  }
  return { db: db.withPlugin(plugin), killAfter: (statements: number) => void (statementsLeft = statements) }
}

interface Life {
  readonly accountId: string
  readonly handle: Handle
  readonly created: number
  deleted: number
}

const hoursOfLife = ({ created, deleted }: Life): string[] => {
  const hours: string[] = []
  for (let hour = Math.floor(created / HOUR) * HOUR; hour + HOUR <= END && hour < deleted; hour += HOUR)
    hours.push(`${new Date(hour).toISOString().slice(0, 13)} server tiny ${MONTHLY_CENTS}`)
  return hours
}

async function openWorld(seed: number) {
  const { db } = database
  await sql`
    truncate price, billed_resource, billed_life, usage_hour, usage_day, network_transfer, invoice, invoice_line,
      invoice_push, credit_application, invoice_run, invoice_task, credit, payment_customer, payment_event,
      email_outbox, account cascade`.execute(db)
  await sql`update metering set looked_at = null, metered_through = null, closed_until = '1970-01-01Z'`.execute(db)
  await sql`update payment_comparison set due_at = '1970-01-01Z'`.execute(db)
  const random = randomOf(seed)
  const metering = killable(db)
  const cloud = openMeteredCloud(metering.db)
  const { fake, payments, fault, takeEvents } = openTestPayments(cloud.clock)
  const { processor } = payments
  const lives: Life[] = []
  const accounts = await Promise.all(Array.from({ length: 3 }, () => createAccount(db)))
  const untold: (ReturnType<typeof takeEvents>[number] & { readonly at: Date })[] = []
  const told = new Set<string>()
  let crashes = 0
  cloud.at(new Date(START))
  cloud.plan('tiny', MONTHLY_CENTS)
  await cloud.meter()

  /** A process does its work, and dies at some statement of it or does not. */
  async function live(work: (db: Database, killAfter: (statements: number) => void) => Promise<unknown>) {
    const { db: own, killAfter } = killable(db)
    if (random(3) > 0) killAfter(random(40))
    await work(own, killAfter).catch((error: unknown) => {
      if (!(error instanceof Crash)) throw error
      crashes += 1
    })
  }
  const partsOf = (own: Database) => ({ clock: cloud.clock, db: own, log, random: systemRandom })

  async function meter(): Promise<void> {
    metering.killAfter(random(3) > 0 ? random(30) : Number.POSITIVE_INFINITY)
    await cloud.meter().catch((error: unknown) => {
      if (!(error instanceof Crash)) throw error
      crashes += 1
      cloud.restart()
    })
    metering.killAfter(Number.POSITIVE_INFINITY)
  }

  const invoice = () => live((own) => invoiceMonths(partsOf(own)))
  const pay = () =>
    live(async (own, killAfter) => {
      fault(() => {
        if (random(4) > 0) return undefined
        const kind = FAULTS[random(FAULTS.length)]
        if (random(3) === 0) killAfter(0) // with the request under way
        return kind
      })
      await processPayments({ ...partsOf(own), processor })
      await upkeep({ ...partsOf(own), processor }).catch((error: unknown) => {
        if (!(error instanceof Unavailable || error instanceof ProcessorRefusal)) throw error // the next round does it
      })
    })

  /** Some of what the processor has to tell comes, some of it twice, in any order. */
  async function tell(all = false): Promise<void> {
    untold.push(...takeEvents().map((sent) => ({ ...sent, at: cloud.clock.now() })))
    const coming = all ? untold.splice(0) : untold.filter(() => random(2) === 0)
    for (const { body, signature, at } of coming.toSorted(() => random(3) - 1)) {
      const event = payments.readEvent(Buffer.from(body), signature, at)
      const { id, type, invoiceId = null, customerId = null } = event
      await storePaymentEvent(db, { id, type, invoiceId, customerId }, cloud.clock.now())
      told.add(id)
    }
    const again = untold.filter(({ event }) => !told.has(event.id) || random(3) > 0)
    untold.splice(0, untold.length, ...again)
  }

  /** What customers do. */
  async function act(now: number): Promise<void> {
    const accountId = accounts[random(accounts.length)] ?? ''
    const living = lives.filter(({ deleted }) => deleted === Number.POSITIVE_INFINITY)
    const chosen = living[random(Math.max(1, living.length))]
    const what = random(8)
    if (what < 3 && living.length < 6)
      lives.push({
        accountId,
        handle: cloud.server({ accountId, plan: 'tiny' }),
        created: now,
        deleted: Number.POSITIVE_INFINITY,
      })
    else if (what < 4 && chosen !== undefined) {
      await chosen.handle.delete()
      chosen.deleted = now
    } else if (what < 5) await give(accountId, 100 + random(3_000), now)
    else if (what < 6) await saveCard(accountId)
    else if (what < 7) {
      const open = fake.state.invoices.find(({ status }) => status === 'open')
      if (open !== undefined) fake.pay(open.id, random(2) === 0)
    } else fake.chargeDue()
  }

  const give = (accountId: string, amountCents: number, now: number) =>
    db.transaction().execute((tx) =>
      addCredit(tx, {
        id: newUuid(systemRandom),
        accountId,
        label: 'some',
        source: 'staff',
        amountCents,
        now: new Date(now),
        expiresAt: random(2) === 0 ? null : new Date(now + random(60 * 24) * HOUR + 1),
      }),
    )

  async function saveCard(accountId: string): Promise<void> {
    fault(() => undefined)
    const customer = await processor.createCustomer(await readPayer(db, accountId))
    const customerId = await recordPaymentCustomer(db, accountId, customer, cloud.clock.now())
    const url = await processor.createSetupSession(customerId, 'http://127.0.0.1/settings/billing', 'eur')
    fake.completeSession(url.split('/').at(-1) ?? '', random(2) === 0)
  }

  /** Nothing fails from now on, until there is nothing left to do. */
  async function rest(): Promise<void> {
    fault(() => undefined)
    const parts = { ...partsOf(db), processor }
    await cloud.meter()
    for (let round = 0; round < 30; round += 1) {
      await invoiceMonths(parts)
      await processPayments(parts)
      fake.chargeDue()
      await tell(true)
      const left = [(await countWaiting(db)).waiting, (await countPushes(db)).waiting, await countPaymentEvents(db)]
      if (left.every((count) => count === 0)) return await upkeep(parts)
      cloud.at(new Date(cloud.clock.now().getTime() + 2 * HOUR))
    }
    throw new Error('it does not come to rest')
  }

  return {
    random,
    cloud,
    fake,
    lives,
    accounts,
    meter,
    invoice,
    pay,
    tell,
    act,
    rest,
    crashes: () => crashes,
    parts: { ...partsOf(db), processor },
  }
}

type World = Awaited<ReturnType<typeof openWorld>>

/** Holds at any moment: nobody pays twice, and no credit pays more than it was. */
async function expectNothingTwice({ fake }: World): Promise<void> {
  const invoiceOf = new Map(fake.state.invoices.map(({ id, metadata }) => [id, metadata['invoice_id']]))
  const charged = fake.state.charges.map(({ invoice }) => invoiceOf.get(invoice))
  expect(new Set(charged).size).toBe(charged.length)
  const { rows } = await sql`
    select from credit where spent_cents > amount_cents or spent_cents <>
      (select coalesce(sum(amount_cents), 0) from credit_application where credit_id = credit.id)`.execute(database.db)
  expect(rows).toEqual([])
}

/** At rest: hours are those of the lives, the ledger is made of them, and the processor has what the ledger says. */
async function expectBooks({ fake, lives, accounts, parts, cloud }: World): Promise<void> {
  const { db } = database
  for (const accountId of accounts)
    expect((await hoursOf(db, accountId)).toSorted()).toEqual(
      lives
        .filter((life) => life.accountId === accountId)
        .flatMap(hoursOfLife)
        .toSorted(),
    )
  const invoices = await db.selectFrom('invoice').selectAll().execute()
  expect(invoices.length).toBeGreaterThan(0)
  const at = new Map(Map.groupBy(fake.state.invoices, ({ metadata }) => metadata['invoice_id'] ?? ''))
  for (const { id, total_cents, credit_applied_cents, payment_status, processor_id } of invoices) {
    const due = total_cents - credit_applied_cents
    const there = at.get(id) ?? []
    at.delete(id)
    expect(there.map((each) => [each.id, totalOf(each)])).toEqual(due === 0 ? [] : [[processor_id, due]])
    const charges = fake.state.charges.filter(({ invoice }) => invoice === processor_id)
    const isPaid = there.some(({ status }) => status === 'paid')
    expect(charges.map(({ amount }) => amount)).toEqual(isPaid && due >= SMALLEST_CHARGE_CENTS ? [due] : [])
    expect(payment_status).toBe(due === 0 ? (total_cents === 0 ? 'unbilled' : 'paid') : isPaid ? 'paid' : 'overdue')
  }
  expect([...at.keys()]).toEqual([])
  expect(await compareLedger(parts)).toEqual([])
  const grace = new Date(cloud.clock.now().getTime() - 14 * 24 * HOUR)
  const { rows } = await sql`
    select from account where (suspended_for_payment_at is not null) <>
      exists (select from invoice where account_id = account.id and overdue_since <= ${grace})`.execute(db)
  expect(rows).toEqual([])
}

/** Tests of the file that calls it. */
export const testMonths = (seeds: readonly number[]): void =>
  test.each(seeds)('months of seed %i', { timeout: 240_000 }, async (seed) => {
    const world = await openWorld(seed)
    const { random, cloud } = world
    for (let now = START; now < END; ) {
      now += 1_000 * (1 + random(60 * 60 * 16))
      if (now >= END) break
      cloud.at(new Date(now))
      await world.act(now)
      await world.meter()
      if (random(3) === 0) await world.invoice()
      await Promise.all(random(3) === 0 ? [world.pay(), world.pay()] : [world.pay()])
      if (random(2) === 0) await world.tell()
      await expectNothingTwice(world)
    }
    cloud.at(new Date(END + 3 * MINUTE))
    await world.rest()
    await expectNothingTwice(world)
    await expectBooks(world)
    expect(world.crashes()).toBeGreaterThan(0)
  })
