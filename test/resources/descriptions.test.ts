/** Every field that the API has is explained and shown: in the documents, and in the schemas of MCP tools. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import { fullFormats } from 'ajv-formats/dist/formats.js'
import { describe, expect, test } from 'vitest'
import { documentFor } from '../../apiserver/kit/pages/documents.ts'
import { eachField } from '../../kit/http/openapi-fields.ts'
import type { Schema } from '../../kit/http/openapi-fields.ts'
import { toolsOf } from '../../kit/http/mcp/tools.ts'
import { FIELD_DESCRIPTIONS } from '../../resources/descriptions.ts'
import { ROUTES } from '../../resources/index.ts'

type Field = Schema & {
  readonly description?: string
  readonly examples?: readonly unknown[]
  readonly example?: unknown
}
interface Parameter extends Field {
  readonly name: string
  readonly schema: Schema
}
interface Operation {
  readonly operationId: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema?: Schema }>> }
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema?: Schema }>> }>
  >
}
interface Document {
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

/** Each field and parameter of the document, with the place where it stands. */
function fieldsOf({ components, paths }: Document): { readonly place: string; readonly field: Field }[] {
  const found: { place: string; field: Field }[] = []
  const collect = (schema: Schema | undefined, place: string) =>
    eachField(schema, (name, field) => found.push({ place: `${place}.${name}`, field }))
  for (const [name, schema] of Object.entries(components.schemas)) collect(schema, name)
  for (const operation of Object.values(paths).flatMap((methods) => Object.values(methods))) {
    for (const parameter of operation.parameters ?? [])
      found.push({
        place: `${operation.operationId}.${parameter.name}`,
        field: { ...parameter.schema, ...parameter, examples: [parameter.example] },
      })
    for (const { content } of [operation.requestBody ?? {}, ...Object.values(operation.responses)])
      for (const { schema } of Object.values(content ?? {})) collect(schema, operation.operationId)
  }
  return found
}

describe.each(['customer', 'operator'] as const)('the document for %ss', (audience) => {
  const document = JSON.parse(JSON.stringify(documentFor(audience))) as Document
  const fields = fieldsOf(document)

  test('has fields', () => expect(fields.length).toBeGreaterThan(100))
  test('every field and parameter has a description: in its shape or in resources/descriptions.ts', () => {
    expect(fields.filter(({ field }) => (field.description ?? '') === '').map(({ place }) => place)).toEqual([])
  })
  test('every field and parameter has an example that it takes: a value is in resources/kit/examples.ts', () => {
    const ajv = new Ajv2020({ strict: false, formats: fullFormats })
    ajv.addSchema(document, 'document')
    const wrong = fields.flatMap(
      ({ place, field: { description: _text, examples = [], example: _one, ...schema } }) => {
        if (examples.length === 0 || examples[0] === undefined) return [`${place} has none`]
        const closed = JSON.parse(
          JSON.stringify(schema).replaceAll('"#/components/', '"document#/components/'),
        ) as object
        return examples
          .filter((example) => !ajv.validate('schema' in closed ? (closed.schema as object) : closed, example))
          .map((example) => `${place} shows ${JSON.stringify(example)}: ${ajv.errorsText()}`)
      },
    )
    expect(wrong).toEqual([])
  })
})

test('every argument and every field of an answer of an MCP tool has a description', () => {
  const missing: string[] = []
  for (const { shown, outputSchema } of toolsOf(ROUTES, { descriptions: FIELD_DESCRIPTIONS }))
    for (const schema of [shown.inputSchema, outputSchema ?? {}])
      for (const part of [schema, ...Object.values((schema['$defs'] ?? {}) as Record<string, Schema>)])
        eachField(part as Schema, (name, field) => {
          if (((field as Field).description ?? '') === '') missing.push(`${shown.name}.${name}`)
        })
  expect(missing).toEqual([])
})

test('no description is left of a removed field', () => {
  const names = new Set(
    (['customer', 'operator'] as const).flatMap((audience) =>
      fieldsOf(JSON.parse(JSON.stringify(documentFor(audience))) as Document).map(({ place }) =>
        place.split('.').at(-1),
      ),
    ),
  )
  expect(Object.keys(FIELD_DESCRIPTIONS).filter((key) => !names.has(key.split('.').at(-1)))).toEqual([])
})
