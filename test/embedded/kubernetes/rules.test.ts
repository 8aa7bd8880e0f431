import { expect, test } from 'vitest'
import { compileCel } from '../../../embedded/kubernetes/schema/cel.ts'
import { ruleFaults } from '../../../embedded/kubernetes/schema/rules.ts'
import type { Schema } from '../../../embedded/kubernetes/schema/schema.ts'

const faults = (schema: Schema, value: any, old?: any) =>
  ruleFaults(value, old, schema, 'spec').map(({ field, message }) => `${field}: ${message}`)
const withRule = (schema: Schema, rule: string, more: object = {}): Schema => ({
  ...schema,
  'x-kubernetes-validations': [{ rule, ...more }],
})
const limits: Schema = { type: 'object', properties: { low: { type: 'integer' }, high: { type: 'integer' } } }

test('a rule across members', () => {
  const schema = withRule(limits, 'self.low <= self.high', { message: 'low must not be above high', fieldPath: '.low' })
  expect(faults(schema, { low: 1, high: 2 })).toEqual([])
  expect(faults(schema, { low: 3, high: 2 })).toEqual(['spec.low: Invalid value: low must not be above high'])
  expect(faults(schema, { low: 3 })[0]).toContain('no such key: high evaluating rule')
})

test('transition rules need a past, unless they say otherwise', () => {
  const fixed = withRule({ type: 'string' }, 'self == oldSelf', { message: 'is fixed' })
  expect(faults(fixed, 'a')).toEqual([])
  expect(faults(fixed, 'b', 'a')).toEqual(['spec: Invalid value: "b": is fixed'])
  const optional = withRule({ type: 'integer' }, 'oldSelf.hasValue() ? self >= oldSelf.value() : self == 1', {
    optionalOldSelf: true,
  })
  expect(faults(optional, 2)).toHaveLength(1)
  expect(faults(optional, 1)).toEqual([])
  expect(faults(optional, 0, 1)).toHaveLength(1)
})

test('what has not changed is not held to a rule that it breaks', () => {
  const schema: Schema = {
    type: 'object',
    properties: { a: withRule({ type: 'integer' }, 'self < 10'), b: { type: 'string' } },
  }
  expect(faults(schema, { a: 50, b: 'new' }, { a: 50, b: 'old' })).toEqual([])
  expect(faults(schema, { a: 51, b: 'new' }, { a: 50, b: 'old' })).toHaveLength(1)
})

test('items of keyed lists have a past', () => {
  const items: Schema = {
    type: 'object',
    properties: { name: { type: 'string' }, size: withRule({ type: 'integer' }, 'self >= oldSelf') },
  }
  const schema: Schema = {
    type: 'array',
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['name'],
    items,
  }
  expect(
    faults(
      schema,
      [
        { name: 'b', size: 1 },
        { name: 'a', size: 1 },
      ],
      [{ name: 'a', size: 2 }],
    ),
  ).toEqual(['spec[1].size: Invalid value: 1: failed rule: self >= oldSelf'])
})

test.each([
  ['self.isSorted()', { type: 'array' }, [1, 2, 3], true],
  ['self.sum() == 6', { type: 'array', items: { type: 'integer' } }, [1, 2, 3], true],
  ['self.max() == 3 && self.min() == 1', { type: 'array', items: { type: 'integer' } }, [1, 2, 3], true],
  ["self.find('[0-9]+') == '12'", { type: 'string' }, 'a12b', true],
  ["self.replace('a', 'b') == 'bb'", { type: 'string' }, 'ab', true],
  ['isIP(self)', { type: 'string' }, '::1', true],
  ['isCIDR(self)', { type: 'string' }, '10.0.0.0/33', false],
  ["self > timestamp('2020-01-01T00:00:00Z')", { type: 'string', format: 'date-time' }, '2021-01-01T00:00:00Z', true],
  ["self.all(k, k.startsWith('k'))", { type: 'object', additionalProperties: { type: 'string' } }, { k1: 'x' }, true],
  ['has(self.a) && self.a == 1', { type: 'object', properties: { a: { type: 'integer' } } }, {}, false],
] as const)('%s of the library of Kubernetes', (rule, schema, value, expected) => {
  expect(faults(withRule(schema as Schema, rule), value).length === 0).toBe(expected)
})

test.each([
  ['self.nothing()', { type: 'string' }],
  ['unknown(self)', { type: 'string' }],
  ['self ==', { type: 'string' }],
  ['self + 1', { type: 'integer' }],
  ['self.bogus == 1', limits],
  ['self.low.deep == 1 || self.none', { type: 'object', properties: { low: limits } }],
] as const)('%s is refused when it is written', (rule, schema) => {
  expect(() => compileCel(rule, schema as Schema, false, 'bool')).toThrow()
})
