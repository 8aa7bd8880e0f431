/** The document that clients are generated from: every call of a program, in the shape that generators read. */
import { describe, expect, test } from 'vitest'
import { documentFor } from '../../../apiserver/kit/pages/documents.ts'
import { ROUTES } from '../../../resources/index.ts'
import { LEFT_OUT, sdkDocument } from '../../../tools/sdk/document.ts'

interface Operation {
  readonly operationId: string
  readonly parameters?: readonly { readonly name: string }[]
  readonly responses: Readonly<Record<string, { readonly content?: object }>>
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: object }
}

const customer = JSON.parse(JSON.stringify(documentFor('customer')))
const document = sdkDocument(customer) as Document
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, ...operation })),
)

test('it has every operation that a token may call, but for those with a reason', () => {
  const callable = ROUTES.filter(
    ({ credentials, audience }) => audience === 'customer' && credentials.includes('token'),
  ).map(({ id }) => id)
  const known = [...operations.map(({ operationId }) => operationId), ...Object.keys(LEFT_OUT)]
  expect(known.toSorted()).toEqual(callable.toSorted())
})

test('every POST may be repeated by its key', () => {
  const without = operations.filter(
    ({ method, parameters = [] }) => method === 'post' && !parameters.some(({ name }) => name === 'Idempotency-Key'),
  )
  expect(without).toEqual([])
})

test('answers are successes, in JSON or without a body', () => {
  for (const { operationId, responses } of operations) {
    expect(Object.keys(responses).length, operationId).toBeGreaterThan(0)
    for (const [status, { content }] of Object.entries(responses)) {
      expect(status, operationId).toMatch(/^2/)
      expect(Object.keys(content ?? {}).filter((type) => type !== 'application/json')).toEqual([])
    }
  }
})

test('ids are texts everywhere, and every schema that is referred to is there', () => {
  const text = JSON.stringify(document)
  expect(text).not.toContain('"uuid"')
  const named = [...text.matchAll(/"#\/components\/(\w+)\/(\w+)"/g)].map(([, kind, name]) => `${kind}/${name}`)
  const known = Object.keys(document.components.schemas).map((name) => `schemas/${name}`)
  expect([...new Set([...named, 'schemas/Problem'])].toSorted()).toEqual(known.toSorted())
})

describe('a POST without a key', () => {
  test('is refused, because the layers would repeat it', () => {
    const post = { operationId: 'ring_bell', 'x-credentials': ['token'], tags: ['Bells'], responses: {} }
    const odd = { ...customer, paths: { '/v1/bells': { post } } }
    expect(() => sdkDocument(odd)).toThrow('ring_bell takes no Idempotency-Key')
  })
})
