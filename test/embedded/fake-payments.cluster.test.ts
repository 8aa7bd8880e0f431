/** The fake payment processor against what the real one publishes: the requests that the product sends are taken by its
 *  mock server, and what the fake answers has the names, types and values of its schema. The fake leaves out what the
 *  product does not read, so nothing is asked of what it leaves out. */
import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Ajv, type ValidateFunction } from 'ajv'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { FakePayments } from '../../embedded/fake-payments/processor.ts'
import { openStripe } from '../../integrations/payments/stripe.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { buildTool, sourceFolder } from '../../tools/cluster/build.ts'

const API_KEY = 'sk_test_fake'
const ADDRESS = /^Listening for HTTP at address: (\S+)$/
let validatorOf: (schema: string) => ValidateFunction
let mockUrl: string
let stopMock: () => Promise<void>

/** A schema of the published document for values that leave things out but invent nothing. */
function schemaOfGiven(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(schemaOfGiven)
  if (typeof schema !== 'object' || schema === null) return schema
  const entries = Object.entries(schema).filter(
    ([name, value]) =>
      !(name.startsWith('x-') || (name === 'required' && Array.isArray(value)) || typeof value === 'boolean'),
  )
  const given: Record<string, unknown> = Object.fromEntries(
    entries.map(([name, value]) => [name, name === 'enum' ? value : schemaOfGiven(value)]),
  )
  if (given['type'] === 'object' && given['properties'] !== undefined) given['additionalProperties'] ??= false
  return 'nullable' in schema && schema.nullable === true ? { anyOf: [given, { type: 'null' }] } : given
}

beforeAll(async () => {
  const child = spawn(await buildTool('stripe-mock'), ['-http-addr', '127.0.0.1:0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  stopMock = async () => {
    child.kill()
    await ended
  }
  for await (const line of createInterface(child.stdout)) {
    const [, address] = ADDRESS.exec(line) ?? []
    if (address === undefined) continue
    mockUrl = `http://${address}`
    break
  }
  child.stdout.resume()
  const file = join(await sourceFolder('stripe-mock'), 'embedded/openapi/spec3.json')
  const { components }: { components: { schemas: object } } = JSON.parse(await readFile(file, 'utf8'))
  const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true })
  ajv.addSchema({ $id: 'published', components: schemaOfGiven(components) })
  validatorOf = (schema) => ajv.compile({ $ref: `published#/components/schemas/${schema}` })
})
afterAll(() => stopMock())

/** What is wrong with an object of the fake, in the words of the validator. */
function faultsOf(object: object, name: string): readonly string[] {
  const validate = validatorOf(name)
  if (validate(object)) return []
  return (validate.errors ?? []).map(
    ({ instancePath, message, params }) => `${name}${instancePath} ${message} ${JSON.stringify(params)}`,
  )
}

const nameOf = (object: object): string =>
  'object' in object && typeof object.object === 'string' ? object.object : 'error'

/** Faults of an answer: of the objects in it, if it is a list. */
function faultsOfAnswer(method: string, body: object): readonly string[] {
  if ('data' in body && Array.isArray(body.data))
    return body.data.flatMap((each: object) => faultsOf(each, nameOf(each)))
  return faultsOf(body, method === 'DELETE' ? `deleted_${nameOf(body)}` : nameOf(body))
}

test('a validator of what is given finds a name, a type and a value that the processor does not have', () => {
  expect(faultsOf({ id: 'in_1', object: 'invoice', status: 'open', payments: { data: [] } }, 'invoice')).toEqual([])
  expect(faultsOf({ colour: 'red' }, 'invoice')[0]).toContain('"additionalProperty":"colour"')
  expect(faultsOf({ total: '5' }, 'invoice')[0]).toContain('must be integer')
  expect(faultsOf({ status: 'lost' }, 'invoice')[0]).toContain('must be equal to one of the allowed values')
})

test('requests and answers are as the processor publishes them', async () => {
  const fake = new FakePayments({ clock: systemClock, apiKey: API_KEY, url: 'http://127.0.0.1:9' })
  const faults: string[] = []
  const routes = new Set<string>()
  const processor = openStripe({
    url: new URL(mockUrl),
    apiKey: API_KEY,
    fetch: async (input, init) => {
      const taken = await fetch(input, init)
      const told = await taken.text()
      if (!taken.ok) faults.push(`${init?.method} ${String(input)} was answered ${taken.status}: ${told}`)
      const { pathname, search } = new URL(String(input))
      const method = init?.method ?? 'GET'
      routes.add(`${method} ${pathname.replaceAll(/\b[a-z]+_fake_\d+/g, '{id}')}`)
      const body = typeof init?.body === 'string' ? init.body : ''
      const answer = fake.handle({ method, path: `${pathname}${search}`, body, authorization: `Bearer ${API_KEY}` })
      faults.push(...faultsOfAnswer(method, answer.body).map((each) => `${method} ${pathname}: ${each}`))
      return new Response(JSON.stringify(answer.body), { status: answer.status })
    },
  })

  const customerId = await processor.createCustomer({ accountId: 'a', name: 'Account', email: 'a@example.com' })
  for (const isGood of [true, false]) {
    await processor.createSetupSession(customerId, 'https://example.com/back', 'eur')
    fake.completeSession(fake.state.sessions.at(-1)?.id ?? '', isGood)
  }
  const [bad, good] = (await processor.readMethods(customerId)).methods.map(({ id }) => id)
  if (bad === undefined || good === undefined) throw new Error('both cards are saved')
  await processor.setDefaultMethod(customerId, bad)
  for (const invoiceId of ['one', 'two', 'three']) {
    const draft = { customerId, invoiceId, currency: 'eur', description: 'February' }
    const { id } = await processor.createInvoice(draft, `create-${invoiceId}`)
    await processor.addLines(id, [{ position: 0, amountCents: 500, description: 'a server' }], `lines-${invoiceId}`)
    expect(await processor.readLines(id)).toEqual(new Set([0]))
    if (invoiceId === 'three') await processor.deleteDraft(id)
    else await processor.finalizeInvoice(id, `finalize-${invoiceId}`)
    fake.chargeDue()
    expect(await processor.readInvoice(id)).toMatchObject(
      { one: { hasFailedCharge: true }, two: { status: 'paid' } }[invoiceId] ?? {},
    )
    await processor.setDefaultMethod(customerId, good)
  }
  expect(await processor.findInvoice(customerId, 'one')).toBeDefined()
  const invoices: unknown[] = []
  for await (const invoice of processor.listInvoices(new Date(0))) invoices.push(invoice)
  expect(invoices).toHaveLength(2)
  expect(await processor.readMethods(customerId)).toMatchObject({ defaultId: good })
  expect(await processor.removeMethod(customerId, good)).toBe(true)

  for (const { type, object } of fake.state.events)
    faults.push(...faultsOf(object, nameOf(object)).map((each) => `event ${type}: ${each}`))
  expect(faults).toEqual([])
  expect([...routes].toSorted()).toEqual([
    'DELETE /v1/invoices/{id}',
    'GET /v1/customers/{id}',
    'GET /v1/customers/{id}/payment_methods',
    'GET /v1/invoices',
    'GET /v1/invoices/{id}',
    'GET /v1/invoices/{id}/lines',
    'GET /v1/payment_methods/{id}',
    'POST /v1/checkout/sessions',
    'POST /v1/customers',
    'POST /v1/customers/{id}',
    'POST /v1/invoices',
    'POST /v1/invoices/{id}/add_lines',
    'POST /v1/invoices/{id}/finalize',
    'POST /v1/payment_methods/{id}/detach',
  ])
})
