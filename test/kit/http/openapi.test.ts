import { expect, test } from 'vitest'
import { DRY_RUN_MEDIA_TYPE } from '../../../kit/http/dry-run.ts'
import { openApiDocument } from '../../../kit/http/openapi.ts'
import { ROUTES } from '../../../resources/index.ts'

const document = JSON.parse(
  JSON.stringify(openApiDocument(ROUTES, { title: 'svccloud', description: '', version: '0', serverUrl: '/' })),
) as Document
interface Response {
  readonly $ref?: string
  readonly content?: Readonly<Record<string, unknown>>
}
interface Operation {
  readonly operationId: string
  readonly responses: Readonly<Record<string, Response>>
  readonly security: readonly object[]
  readonly [key: `x-${string}`]: unknown
}
interface Document {
  readonly openapi: string
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, object>>
    readonly responses: Readonly<Record<string, Response>>
  }
}
const operationOf = (route: (typeof ROUTES)[number]): Operation => {
  const operation = document.paths[route.path]?.[route.method.toLowerCase()]
  if (operation === undefined) throw new Error(`${route.id} is not in the document`)
  return operation
}

test('every route is one operation that says who may call it, what it reveals and what it starts', () => {
  expect(document.openapi).toBe('3.1.0')
  expect(Object.values(document.paths).flatMap((path) => Object.values(path)).length).toBe(ROUTES.length)
  for (const route of ROUTES) {
    expect(operationOf(route), route.id).toMatchObject({
      operationId: route.id,
      'x-permission': route.permission,
      'x-credentials': route.credentials,
      'x-reveals-credential': route.isCredentialRead,
      'x-operation-kinds': route.starts,
      'x-requires-verified-email': route.requiresVerifiedEmail,
      'x-audience': route.audience,
    })
  }
})

const mediaTypesOf = (response: Response | undefined): string[] =>
  Object.keys(
    (response?.$ref === undefined
      ? response
      : document.components.responses[response.$ref.slice('#/components/responses/'.length)]
    )?.content ?? {},
  )

test('every answer and refusal of a route is there, refusals as problem documents', () => {
  for (const route of ROUTES) {
    const { responses } = operationOf(route)
    for (const status of Object.keys(route.answers))
      expect(mediaTypesOf(responses[status]), `${route.id} ${status}`).toEqual(
        route.answers[Number(status)] === null
          ? []
          : [
              route.mediaType,
              ...(Number(status) < 400 ? [] : ['application/problem+json']),
              ...(status === '200' && route.takesDryRun ? [DRY_RUN_MEDIA_TYPE] : []),
            ],
      )
    expect(mediaTypesOf(responses['200']).includes(DRY_RUN_MEDIA_TYPE), route.id).toBe(route.takesDryRun)
    for (const status of [...route.refuses, 429, 500, 'default'])
      expect(mediaTypesOf(responses[status]), `${route.id} ${status}`).toEqual(['application/problem+json'])
  }
})

test('every reference resolves, and answers may gain fields', () => {
  const text = JSON.stringify(document)
  for (const [, kind = '', name = ''] of text.matchAll(/"#\/components\/(\w+)\/([^"]+)"/g))
    expect(document.components).toHaveProperty([kind, name])
  expect(document.components.schemas['Server']).not.toHaveProperty('additionalProperties')
  expect(document.components.schemas['CreateServer']).toHaveProperty('additionalProperties', false)
  expect(text).not.toContain('9007199254740991')
  expect(text).not.toContain('x-kubernetes')
})
