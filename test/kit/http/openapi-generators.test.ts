/** What programs that generate clients need of the documents: each rule was a fault that stopped one of them, or that
 *  made clients which fail. */
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { documentFor } from '../../../apiserver/kit/pages/documents.ts'
import { openApiDocument } from '../../../kit/http/openapi.ts'
import { type Route, route } from '../../../kit/http/route.ts'

interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly properties?: object
  readonly items?: Schema
  readonly default?: unknown
  readonly oneOf?: object
  readonly anyOf?: readonly Schema[]
}
interface Content {
  readonly $ref?: string
  readonly content?: Readonly<Record<string, { readonly schema?: Schema }>>
}
interface Operation {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly requestBody?: Content
  readonly responses: Readonly<Record<string, Content>>
}
interface Document {
  readonly tags: readonly { readonly name: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>
    readonly responses: Readonly<Record<string, Content>>
    readonly securitySchemes: object
  }
}

/** The places in the part of a document where a rule does not hold. An alternative is a member of `anyOf`. */
function faultsIn(
  part: unknown,
  isFault: (schema: Schema, isAlternative: boolean) => boolean,
  place = '',
): readonly string[] {
  if (typeof part !== 'object' || part === null) return []
  const inner = Object.entries(part).flatMap(([key, value]) =>
    key.startsWith('example') ? [] : faultsIn(value, isFault, `${place}/${key}`),
  )
  return isFault(part, /\/(anyOf|oneOf)\/\d+$/.test(place)) ? [place, ...inner] : inner
}

/** The schemas that answers refer to, each once, with the answers themselves. */
function answersOf({ paths, components }: Document): readonly unknown[] {
  const found = new Set<unknown>()
  const follow = (part: unknown) => {
    if (typeof part !== 'object' || part === null) return
    const name = '$ref' in part ? String(part.$ref).split('/').at(-1) : undefined
    const named = name === undefined ? undefined : components.schemas[name]
    if (named !== undefined && !found.has(named)) {
      found.add(named)
      follow(named)
    }
    for (const value of Object.values(part)) follow(value)
  }
  const answers = [
    ...Object.values(paths).flatMap((methods) => Object.values(methods).map(({ responses }) => responses)),
    components.responses,
  ]
  follow(answers)
  return [...found, answers]
}

const isClosed = ({ enum: values, const: value }: Schema): boolean =>
  values?.some((each) => typeof each === 'string') === true || typeof value === 'string'

describe.each(['customer', 'operator'] as const)('in the document for %ss', (audience) => {
  const document = JSON.parse(JSON.stringify(documentFor(audience))) as Document
  const { components, paths } = document
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods))
  const names = Object.keys(components.schemas)

  test('a schema has one type, which may be nullable', () => {
    const isMixed = ({ type }: Schema) => Array.isArray(type) && !(type.length === 2 && type.includes('null'))
    expect(faultsIn([components, paths], isMixed)).toEqual([])
  })

  test('no schema has the type null alone', () => {
    expect(faultsIn([components, paths], ({ type }, isAlternative) => type === 'null' && !isAlternative)).toEqual([])
  })

  test('null is an alternative to named schemas only, and then no default', () => {
    const isBeside = ({ anyOf = [], default: value }: Schema) =>
      anyOf.some(({ type }) => type === 'null') &&
      (value !== undefined || anyOf.some(({ type }) => type !== 'null' && type !== undefined))
    expect(faultsIn([components, paths], isBeside)).toEqual([])
  })

  test('alternatives have no values in lists without a name', () => {
    const isUnnamed = ({ anyOf = [] }: Schema) => anyOf.some(({ items }) => items?.type !== undefined)
    expect(faultsIn([components, paths], isUnnamed)).toEqual([])
  })

  test('no schema has members and alternatives', () => {
    const isBoth = ({ properties, oneOf, anyOf }: Schema) =>
      properties !== undefined && (oneOf !== undefined || anyOf !== undefined)
    expect(faultsIn([components, paths], isBoth)).toEqual([])
  })

  test('answers name their values as those of today, and requests as all there are', () => {
    expect(answersOf(document).flatMap((part) => faultsIn(part, isClosed))).toEqual([])
    const requests = operations.map(({ requestBody }) => requestBody)
    expect(faultsIn(requests, (schema) => 'x-extensible-enum' in schema)).toEqual([])
  })

  test('each body and each answer in JSON has a name', () => {
    const unnamed = operations.flatMap(({ operationId, requestBody, responses }) =>
      [requestBody, ...Object.values(responses)]
        .map((each) => each?.content?.['application/json']?.schema)
        .filter((schema) => schema !== undefined && schema.$ref === undefined)
        .map(() => operationId),
    )
    expect(unnamed).toEqual([])
  })

  test('names differ by more than case, and from the names that programs derive: NewServer makes a Server', () => {
    const taken = [...names, ...Object.keys(components.securitySchemes)].map((name) =>
      name.toLowerCase().replaceAll('_', ''),
    )
    expect(taken.filter((name, index) => taken.indexOf(name) !== index)).toEqual([])
    expect(names.filter((name) => name.startsWith('New'))).toEqual([])
    const derived = operations.flatMap(({ operationId }) =>
      ['response', 'params', 'body', 'jsonrequestbody'].map((kind) => operationId.replaceAll('_', '') + kind),
    )
    expect(names.filter((name) => derived.includes(name.toLowerCase()))).toEqual([])
  })

  test('a schema that differs in requests is Input there, and has the noun alone in answers', () => {
    expect(names.filter((name) => /Outputs?$|AsAnswered/.test(name))).toEqual([])
    const bodies = operations.map(({ operationId }) => operationId.replaceAll('_', ''))
    const inputs = names.filter((name) => name.endsWith('Input') && !bodies.includes(name.toLowerCase()))
    const answered = JSON.stringify(answersOf(document))
    expect(inputs.filter((name) => answered.includes(`/${name}"`))).toEqual([])
  })

  test('each noun has one tag, whose name is words', () => {
    expect(
      document.tags.map(({ name }) => name).filter((name) => !/^[A-Z][A-Za-z]+([ -][A-Za-z]+)*$/.test(name)),
    ).toEqual([])
    const byPath = Object.entries(paths).map(([path, methods]) => ({
      noun: path.replace(/\/\{\w+\}$/, ''),
      tags: Object.values(methods).flatMap(({ tags }) => tags),
    }))
    const tagsOf = Map.groupBy(byPath, ({ noun }) => noun)
    const divided = [...tagsOf].filter(([, all]) => new Set(all.flatMap(({ tags }) => tags)).size !== 1)
    expect(divided.map(([noun]) => noun)).toEqual([])
    const singular = document.tags.map(({ name }) => name.toLowerCase().replace(/s$/, ''))
    expect(singular.filter((name, index) => singular.indexOf(name) !== index)).toEqual([])
  })
})

const answering = (id: string, schema: z.ZodType) =>
  route({
    id,
    method: 'GET',
    path: `/v1/${id.replaceAll('_', '-')}`,
    summary: id,
    permission: 'read',
    answers: { 200: schema },
  })
const changing = (schema: z.ZodType) =>
  route({
    id: 'change_it',
    method: 'PUT',
    path: '/v1/it',
    summary: 'change_it',
    permission: 'operate',
    body: z.strictObject({ things: z.array(schema) }),
    example: { things: [] },
    answers: { 200: z.strictObject({ items: z.array(schema), next_cursor: z.null() }) },
  })
const documentOf = (...routes: readonly Route[]) =>
  openApiDocument(routes, { title: '', description: '', version: '0', serverUrl: '/' }).components?.schemas

describe('an answer', () => {
  const Thing = z.strictObject({ name: z.string() }).meta({ id: 'Thing' })

  test.each([
    ['ThingPage', z.strictObject({ items: z.array(Thing), next_cursor: z.null() })],
    ['ThingAnswer', z.strictObject({ thing: Thing })],
    ['ThingStarted', z.strictObject({ thing: Thing, operation: z.string() })],
    ['ReadItAnswer', z.strictObject({ thing: Thing, size: z.int() })],
    ['ReadItAnswer', z.strictObject({ thing: Thing, operation: z.string(), size: z.int() })],
    ['ReadItAnswer', z.strictObject({ name: z.string() })],
  ])('is %s by its shape', (name, schema) => {
    expect(Object.keys(documentOf(answering('read_it', schema)) ?? {})).toContain(name)
  })

  test('shares its name with those that are alike, and with no others', () => {
    const one = answering('read_it', z.strictObject({ thing: Thing }))
    expect(documentOf(one, answering('see_it', z.strictObject({ thing: Thing })))).toHaveProperty('ThingAnswer')
    expect(() => documentOf(one, answering('see_it', z.strictObject({ it: Thing })))).toThrow('ThingAnswer')
  })

  test('says of a member of several types that it is one of them', () => {
    const schema = z.strictObject({ id: z.union([z.string(), z.int()]), other: z.int().nullable() })
    expect(documentOf(answering('read_it', schema))).toMatchObject({
      ReadItAnswer: {
        properties: { id: { anyOf: [{ type: 'string' }, { type: 'integer' }] }, other: { type: ['integer', 'null'] } },
      },
    })
  })
})

describe('a schema in requests and in answers', () => {
  const Thing = z.strictObject({ name: z.enum(['one', 'two']) }).meta({ id: 'Thing' })

  test('is closed in requests only, by its name with Input', () => {
    expect(documentOf(changing(Thing))).toMatchObject({
      ThingInput: { properties: { name: { enum: ['one', 'two'] } }, additionalProperties: false },
      Thing: { properties: { name: { type: 'string', 'x-extensible-enum': ['one', 'two'] } } },
      ChangeIt: { properties: { things: { items: { $ref: '#/components/schemas/ThingInput' } } } },
      ThingPage: { properties: { items: { items: { $ref: '#/components/schemas/Thing' } } } },
    })
  })

  test('has one name where it is the same', () => {
    const Word = z.string().meta({ id: 'Word' })
    expect(Object.keys(documentOf(changing(Word)) ?? {})).toEqual(['Word', 'Problem', 'ChangeIt', 'WordPage'])
  })

  test('never takes the name of another', () => {
    const Taken = z.strictObject({ thing: Thing }).meta({ id: 'ThingInput' })
    const other = answering('read_it', z.strictObject({ it: Taken }))
    expect(() => documentOf(changing(Thing), other)).toThrow('ThingInput')
  })
})
