/** The shape of the published document, a line for each field: what a change of the contract looks like in review. */
import { readFile, writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { openApiDocument } from '../../kit/http/openapi.ts'
import { environment } from '../../kit/sys/process.ts'
import { FIELD_DESCRIPTIONS } from '../../resources/descriptions.ts'
import { ROUTES } from '../../resources/index.ts'

const file = new URL('openapi.txt', import.meta.url)

interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly 'x-extensible-enum'?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | Schema
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
}
interface Media {
  readonly content?: Readonly<Record<string, { readonly schema?: Schema }>>
  readonly $ref?: string
}
interface Operation {
  readonly operationId: string
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly schema?: Schema }[]
  readonly requestBody?: Media
  readonly responses: Readonly<Record<string, Media>>
}
interface Document {
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

/** In one word, or in as many as it has alternatives. */
function wordOf(schema: Schema): string {
  const { $ref, enum: values, 'x-extensible-enum': known, const: value, type = 'any', format, items } = schema
  const parts = schema.anyOf ?? schema.oneOf ?? schema.allOf
  if ($ref !== undefined) return $ref.split('/').at(-1) ?? ''
  if (parts !== undefined) return parts.map(wordOf).join(schema.allOf === undefined ? ' | ' : ' & ')
  if (value !== undefined) return JSON.stringify(value)
  if (known !== undefined)
    return known
      .map((each) => JSON.stringify(each))
      .concat('…', [type].flat().includes('null') ? ['null'] : [])
      .join(' | ')
  if (values !== undefined) return values.map((each) => JSON.stringify(each)).join(' | ')
  if (items !== undefined) return `${wordOf(items)}[]`
  const written = (each: string) => (format === undefined || each === 'null' ? each : `${each}(${format})`)
  return [type].flat().map(written).join(' | ')
}

/** The fields below a place, one line each. */
function linesOf(place: string, schema: Schema): readonly string[] {
  const inner = [schema, schema.items, ...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])]
  const fields = inner.flatMap((each) =>
    Object.entries(each?.properties ?? {}).flatMap(([name, field]) => {
      const isRequired = each?.required?.includes(name) === true
      return linesOf(`${place}.${name}${isRequired ? '' : '?'}`, field)
    }),
  )
  return [`${place}: ${wordOf(schema)}`, ...fields]
}

const mediaLines = (place: string, media: Media | undefined): readonly string[] =>
  media === undefined
    ? []
    : media.$ref !== undefined
      ? [`${place}: ${media.$ref.split('/').at(-1)}`]
      : Object.entries(media.content ?? { none: {} }).flatMap(([type, { schema }]) =>
          linesOf(`${place} ${type}`, schema ?? { type: 'nothing' }),
        )

test('the published document has the shape that was reviewed', async () => {
  const routes = ROUTES.filter(({ audience }) => audience === 'customer')
  const document = openApiDocument(routes, {
    title: 'svccloud',
    description: '',
    version: '0',
    serverUrl: '/',
    descriptions: FIELD_DESCRIPTIONS,
  }) as unknown as Document // JSON of that form
  const operations = Object.values(document.paths).flatMap((methods) =>
    Object.values(methods).flatMap(({ operationId: id, parameters = [], requestBody, responses }) => [
      ...parameters.flatMap(({ name, in: where, schema = {} }) => linesOf(`${id} ${where} ${name}`, schema)),
      ...mediaLines(`${id} body`, requestBody),
      ...Object.entries(responses).flatMap(([status, media]) => mediaLines(`${id} ${status}`, media)),
    ]),
  )
  const schemas = Object.entries(document.components.schemas).flatMap(([name, schema]) => linesOf(name, schema))
  const text = `${[...schemas.toSorted(), ...operations.toSorted()].join('\n')}\n`
  if (environment()['UPDATE'] === '1') await writeFile(file, text)
  expect(text, 'the contract has changed: read the difference, then run with UPDATE=1').toBe(
    await readFile(file, 'utf8'),
  )
})
