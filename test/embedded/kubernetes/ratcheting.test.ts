/** What is stored stays writable when its schema becomes stricter, for as long as it is not changed. */
import { expect, test } from 'vitest'
import type { Json } from '../../../embedded/kubernetes/core/json.ts'
import type { Schema } from '../../../embedded/kubernetes/schema/schema.ts'
import { schemaFaults } from '../../../embedded/kubernetes/schema/validate.ts'
import { openWidgetWorld, widget, WIDGETS } from './world.ts'

const DEFINITION = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.dev'
const SPEC = '/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties'

test('an object that a stricter schema would refuse can be changed elsewhere, and nowhere for the worse', async () => {
  const world = await openWidgetWorld()
  await world.post(WIDGETS, widget('a', { replicas: 8, image: 'abcdef', parts: [{ name: 'p', weight: 50 }] }))
  const stricter = await world.call(
    'PATCH',
    DEFINITION,
    [
      { op: 'replace', path: `${SPEC}/replicas/maximum`, value: 5 },
      { op: 'replace', path: `${SPEC}/image/maxLength`, value: 3 },
      { op: 'add', path: `${SPEC}/parts/items/properties/weight/maximum`, value: 10 },
    ],
    { 'content-type': 'application/json-patch+json' },
  )
  expect(stricter.status).toBe(200)
  const fields = async (spec: object) => {
    const { status, body } = await world.merge(`${WIDGETS}/a`, { spec })
    return status === 200 ? [] : body.details.causes.map(({ field }: { field: string }) => field)
  }
  expect((await world.post(WIDGETS, widget('b', { replicas: 8 }))).status).toBe(422)
  expect(await fields({ note: 'changed' })).toEqual([])
  expect(await fields({ replicas: 7 })).toEqual(['spec.replicas'])
  expect(await fields({ replicas: 7, image: 'abcd' })).toEqual(['spec.replicas', 'spec.image'])
  expect(await fields({ replicas: 5 })).toEqual([])
  expect(await fields({ replicas: 8 })).toEqual(['spec.replicas'])
  expect(await fields({ parts: [{ name: 'q' }, { name: 'p', weight: 50 }] })).toEqual([])
  expect(await fields({ parts: [{ name: 'q', weight: 50 }] })).toEqual(['spec.parts[0].weight'])
})

const small: Schema = { type: 'integer', maximum: 5 }
const faults = (schema: Schema, value: Json, old: Json) =>
  schemaFaults(value, schema, '', old).map(({ field }) => field)

test.each<readonly [string, Schema, Json, Json, readonly string[]]>([
  [
    'a member of an object',
    { type: 'object', properties: { a: small, b: small } },
    { a: 9, b: 8 },
    { a: 9, b: 7 },
    ['b'],
  ],
  ['a value of a map', { type: 'object', additionalProperties: small }, { a: 9, b: 9 }, { a: 9 }, ['b']],
  ['an item of a list without keys has no past', { type: 'array', items: small }, [9, 1], [9], ['[0]']],
  ['a list as a whole', { type: 'array', items: small }, [9, 1], [9, 1], []],
  ['a member that was of another kind', { type: 'object', properties: { a: small } }, { a: 9 }, [9], ['a']],
])('%s', (_what, schema, value, old, expected) => expect(faults(schema, value, old)).toEqual(expected))
