import { expect, test } from 'vitest'
import { Problem, Unavailable } from '../../../domain/problem.ts'
import { ProcessorRefusal } from '../../../integrations/payments/processor.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { openTestPayments } from '../../payments.ts'

const payer = { accountId: 'a', name: 'Ada', email: 'ada@example.com' }

async function withDraft() {
  const test = openTestPayments(systemClock)
  const { processor } = test.payments
  const customerId = await processor.createCustomer(payer)
  const invoice = { customerId, invoiceId: 'i', currency: 'eur', description: 'Usage' }
  return { ...test, processor, customerId, invoice }
}

test('an invoice is made, filled, charged and found by its own id', async () => {
  const { processor, customerId, invoice, fake } = await withDraft()
  const made = await processor.createInvoice(invoice, 'create')
  expect(made).toMatchObject({ invoiceId: 'i', status: 'draft', totalCents: 0 })
  await processor.addLines(made.id, [{ position: 0, amountCents: 900, description: 'server' }], 'lines')
  await processor.addLines(made.id, [{ position: 1, amountCents: -100, description: 'credit' }], 'lines 1')
  expect(await processor.readLines(made.id)).toEqual(new Set([0, 1]))
  expect(await processor.finalizeInvoice(made.id, 'finalize')).toMatchObject({ status: 'open', totalCents: 800 })
  expect(await processor.findInvoice(customerId, 'i')).toMatchObject({ id: made.id })
  expect(await processor.findInvoice(customerId, 'other')).toBeUndefined()
  fake.chargeDue()
  expect(await processor.readInvoice(made.id)).toMatchObject({ status: 'open', hasFailedCharge: true })
  fake.pay(made.id, true)
  expect(await processor.readInvoice(made.id)).toMatchObject({ status: 'paid' })
  expect(await processor.readInvoice('in_none')).toBeUndefined()
})

test('a list of invoices is read to its end, newest first', async () => {
  const { processor, customerId, invoice } = await withDraft()
  for (let count = 0; count < 205; count += 1)
    await processor.createInvoice({ ...invoice, invoiceId: `i${count}` }, `create ${count}`)
  const ids: (string | undefined)[] = []
  for await (const { invoiceId } of processor.listInvoices(new Date(0))) ids.push(invoiceId)
  expect(ids).toHaveLength(205)
  expect([ids[0], ids.at(-1)]).toEqual(['i204', 'i0'])
  expect(await processor.findInvoice(customerId, 'i3')).toMatchObject({ invoiceId: 'i3' })
})

test('the same request with the same key is done once, and answered the same', async () => {
  const { processor, invoice, fake } = await withDraft()
  const first = await processor.createInvoice(invoice, 'key')
  expect((await processor.createInvoice(invoice, 'key')).id).toBe(first.id)
  expect(fake.state.invoices).toHaveLength(1)
  await expect(processor.createInvoice({ ...invoice, invoiceId: 'j' }, 'key')).rejects.toThrow(ProcessorRefusal)
})

test('what may be sent again is Unavailable, what was answered is a refusal', async () => {
  const { processor, invoice, fault } = await withDraft()
  for (const kind of ['lost', 'unanswered', 'busy', 'conflict'] as const) {
    fault(() => kind)
    await expect(processor.createInvoice(invoice, 'key'), kind).rejects.toThrow(Unavailable)
  }
  fault(() => 'broken')
  await expect(processor.createInvoice(invoice, 'other key')).rejects.toThrow(ProcessorRefusal)
  fault(() => undefined)
  await expect(processor.createInvoice(invoice, 'other key')).rejects.toThrow(ProcessorRefusal)
  await expect(processor.finalizeInvoice('in_none', 'x')).rejects.toMatchObject({ status: 404 })
})

test('an event is taken with the signature of its very bytes, for five minutes', async () => {
  const { payments, fake, takeEvents, processor, customerId } = await withDraft()
  await processor.createSetupSession(customerId, 'http://127.0.0.1/settings/billing', 'eur')
  fake.completeSession(fake.state.sessions[0]?.id ?? '', true)
  const [sent] = takeEvents()
  if (sent === undefined) throw new Error('no event')
  const bytes = Buffer.from(sent.body)
  const at = (later: number) => new Date(systemClock.now().getTime() + later)
  expect(payments.readEvent(bytes, sent.signature, at(290_000))).toMatchObject({
    id: sent.event.id,
    type: 'setup_intent.succeeded',
    customerId,
  })
  for (const [body, signature, later] of [
    [bytes, sent.signature, 310_000],
    [Buffer.from(`${sent.body} `), sent.signature, 0],
    [bytes, `${sent.signature.slice(0, -1)}x`, 0],
    [bytes, '', 0],
    [bytes, undefined, 0],
    [Buffer.from('nonsense'), sent.signature, 0],
  ] as const)
    expect(() => payments.readEvent(body, signature, at(later))).toThrow(Problem)
})
