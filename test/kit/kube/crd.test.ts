import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { schemaOf } from '../../../kit/kube/crd.ts'
import { CRD_FOLDER, crdFiles } from '../../../tools/generate.ts'

const folder = join(import.meta.dirname, '../../..', CRD_FOLDER)

test('the committed CRDs are what the definitions say', async () => {
  const files = crdFiles()
  expect((await readdir(folder)).sort()).toEqual([...files.keys()].sort())
  for (const [name, text] of files)
    expect(await readFile(join(folder, name), 'utf8'), `${name}: run npm run generate`).toBe(text)
})

const text = z.string().max(9)
test.each<[why: string, schema: z.ZodType, expected: object]>([
  ['an unbounded integer is 64 bits wide and has no bounds', z.int(), { type: 'integer', format: 'int64' }],
  [
    'a bounded integer says how wide it is',
    z.int().min(0).max(9),
    { type: 'integer', format: 'int32', minimum: 0, maximum: 9 },
  ],
  ['text or number', z.union([text, z.int()]), { 'x-kubernetes-int-or-string': true }],
  ['a union of literals is an enum', z.union([z.literal('a'), z.literal('b')]), { type: 'string', enum: ['a', 'b'] }],
  ['anything', z.unknown(), { 'x-kubernetes-preserve-unknown-fields': true }],
  [
    'an open object keeps what it does not know',
    z.looseObject({}),
    { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  ],
  [
    'a closed object does not speak of additional properties',
    z.strictObject({ a: text.optional() }),
    { type: 'object', properties: { a: { type: 'string', maxLength: 9 } } },
  ],
  [
    'a map keeps its bound',
    z.record(z.string(), text).meta({ maxProperties: 2 }),
    { type: 'object', maxProperties: 2, additionalProperties: { type: 'string', maxLength: 9 } },
  ],
  [
    'a time is bounded by its format, and its pattern stays when RE2 can match it',
    z.iso.date(),
    expect.objectContaining({ type: 'string', format: 'date', maxLength: 64 }),
  ],
  [
    'a pattern of the format that RE2 cannot match goes',
    z.iso.duration(),
    { type: 'string', format: 'duration', maxLength: 64 },
  ],
  [
    'what stands in meta passes through',
    z.array(text).max(2).meta({ 'x-kubernetes-list-type': 'set' }),
    { type: 'array', maxItems: 2, items: { type: 'string', maxLength: 9 }, 'x-kubernetes-list-type': 'set' },
  ],
])('%s', (_why, schema, expected) => expect(schemaOf(schema, 'spec')).toEqual(expected))

test('a tagged union becomes its discriminator, optional members and rules', () => {
  const union = z.discriminatedUnion('type', [
    z.strictObject({ type: z.literal('file'), name: text, path: text }),
    z.strictObject({ type: z.literal('url'), name: text, url: text, port: z.int().min(1).max(9).optional() }),
  ])
  expect(schemaOf(union, 'spec')).toEqual({
    type: 'object',
    required: ['type', 'name'],
    properties: {
      type: { type: 'string', enum: ['file', 'url'] },
      name: { type: 'string', maxLength: 9 },
      path: { type: 'string', maxLength: 9 },
      url: { type: 'string', maxLength: 9 },
      port: { type: 'integer', format: 'int32', minimum: 1, maximum: 9 },
    },
    'x-kubernetes-validations': [
      { rule: "!has(self.path) || self.type in ['file']", message: 'path does not belong to this type' },
      { rule: "has(self.path) || !(self.type in ['file'])", message: 'path is needed for this type' },
      { rule: "!has(self.url) || self.type in ['url']", message: 'url does not belong to this type' },
      { rule: "has(self.url) || !(self.type in ['url'])", message: 'url is needed for this type' },
      { rule: "!has(self.port) || self.type in ['url']", message: 'port does not belong to this type' },
    ],
  })
})

test.each<[why: string, schema: z.ZodType, message: RegExp]>([
  ['a string without a bound', z.strictObject({ a: z.string() }), /spec\.a: a string needs a maximum/],
  ['a list without a bound', z.array(text), /a list needs a maximum/],
  ['a map without a bound', z.record(z.string(), text), /a map needs maxProperties/],
  [
    'lookaround',
    z
      .string()
      .max(9)
      .regex(/^(?=a)/),
    /RE2 cannot match/,
  ],
  [
    'a union without a discriminator',
    z.union([z.strictObject({ a: text }), z.strictObject({ b: text })]),
    /needs a discriminator/,
  ],
  [
    'members that disagree on a field',
    z.discriminatedUnion('t', [
      z.strictObject({ t: z.literal('a'), x: text }),
      z.strictObject({ t: z.literal('b'), x: z.int() }),
    ]),
    /x: members of the union disagree/,
  ],
  ['a tuple', z.tuple([text, z.boolean()]), /cannot say this union/],
])('refuses %s', (_why, schema, message) => expect(() => schemaOf(schema, 'spec')).toThrow(message))
