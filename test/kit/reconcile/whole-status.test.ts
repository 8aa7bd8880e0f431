import { expect, test } from 'vitest'
import { z } from 'zod'
import { missingFields } from '../../../kit/reconcile/whole-status.ts'

const text = z.string().max(9)
const schema = z.strictObject({
  state: text,
  note: text.optional(),
  operation: z.strictObject({ id: text }).optional(),
  volumes: z
    .array(z.strictObject({ name: text, node: text.optional() }))
    .max(3)
    .optional(),
  byNode: z
    .record(text, z.strictObject({ bytes: z.int() }))
    .meta({ maxProperties: 3 })
    .optional(),
})

test.each<[object, readonly string[], string]>([
  [{ state: 'up' }, [], 'all that is required'],
  [{}, ['status.state'], 'nothing'],
  [{ state: null }, ['status.state'], 'null removes'],
  [{ state: 'up', operation: {} }, ['status.operation.id'], 'inside an object'],
  [{ state: 'up', volumes: [{ name: 'a' }, {}] }, ['status.volumes[1].name'], 'inside a list'],
  [{ state: 'up', byNode: { a: { bytes: 1 }, b: {} } }, ['status.byNode.b.bytes'], 'inside a map'],
  [{ state: 7, unknown: {} }, [], 'nothing else is judged'],
])('%j lacks %j: %s', (value, missing) => {
  expect(missingFields(schema, value)).toEqual(missing)
})
