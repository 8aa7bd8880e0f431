/** Bodies that need exactly one of several fields: the check and the document judge alike, and every interface says
 *  it. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import { fullFormats } from 'ajv-formats/dist/formats.js'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { commandHelp } from '../../../cli/help.ts'
import { nameOf } from '../../../cli/commands.ts'
import { COMMANDS } from '../../../cli/session.ts'
import { toolsOf } from '../../../kit/http/mcp/tools.ts'
import { openApiDocument } from '../../../kit/http/openapi.ts'
import { EXACTLY_ONE, exactlyOneIn, exactlyOneOf, isGiven, route } from '../../../kit/http/route.ts'
import { ROUTES } from '../../../resources/index.ts'

const Body = exactlyOneOf(
  z.strictObject({
    name: z.string(),
    file: z.string().optional(),
    image: z.string().nullish(),
    size: z.int().nullish(),
  }),
  ['file', 'image', 'size'],
).meta({ id: 'EitherBody' })

const documentOf = (routes: Parameters<typeof openApiDocument>[0]) =>
  JSON.parse(JSON.stringify(openApiDocument(routes, { title: '', description: '', version: '0', serverUrl: '/' }))) as {
    readonly components: { readonly schemas: Readonly<Record<string, object>> }
  }
const validatorOf = (document: object, name: string) => {
  const ajv = new Ajv2020({ strict: false, formats: fullFormats })
  ajv.addKeyword({
    keyword: EXACTLY_ONE,
    schemaType: 'array',
    validate: (fields: readonly string[], body: object) => fields.filter((field) => isGiven(body, field)).length === 1,
  })
  ajv.addSchema(document, 'document')
  return (value: object) => ajv.validate({ $ref: `document#/components/schemas/${name}` }, value)
}
const either = documentOf([
  route({
    id: 'make_either',
    method: 'POST',
    path: '/v1/eithers',
    summary: 'Make one',
    permission: 'operate',
    audit: 'either.create',
    body: Body,
    answers: { 204: null },
  }),
])

describe('a body', () => {
  const isValid = validatorOf(either, 'EitherBody')
  test.each<readonly [string, object, readonly (readonly [string, string])[]]>([
    ['with the first', { name: 'x', file: 'a' }, []],
    ['with the last', { name: 'x', size: 0 }, []],
    ['with null beside the one', { name: 'x', file: 'a', image: null, size: null }, []],
    ['with none', { name: 'x' }, [['file', 'is required, unless image or size is given']]],
    ['with null alone', { name: 'x', image: null }, [['file', 'is required, unless image or size is given']]],
    ['with two', { name: 'x', image: 'a', size: 1 }, [['size', 'cannot be given together with image']]],
    ['with all', { name: 'x', file: 'a', image: 'b', size: 1 }, [['image', 'cannot be given together with file']]],
    [
      'that lacks another field too',
      {},
      [
        ['name', 'Invalid input: expected string, received undefined'],
        ['file', 'is required, unless image or size is given'],
      ],
    ],
  ])('%s is judged alike by the check and the document', (_what, body, faults) => {
    const issues = Body.safeParse(body).error?.issues ?? []
    expect(issues.map(({ path, message }) => [path.join('.'), message])).toEqual(faults)
    expect(isValid(body)).toBe(faults.length === 0)
  })
})

test('the document says it beside the members, which all are in one type', () => {
  expect(either.components.schemas['EitherBody']).toMatchObject({
    type: 'object',
    additionalProperties: false,
    required: ['name'],
    'x-exactly-one': ['file', 'image', 'size'],
    description: 'Exactly one of file, image and size is given.',
  })
  expect(either.components.schemas['EitherBody']).not.toHaveProperty('oneOf')
})

describe('of the platform', () => {
  const document = documentOf(ROUTES)
  const routes = ROUTES.filter(({ body }) => exactlyOneIn(body).length > 0)
  test('servers, custom images and proofs of a second factor', () => {
    expect(routes.map(({ id }) => id)).toEqual(
      expect.arrayContaining(['create_server', 'create_custom_image', 'verify_login_second_factor']),
    )
  })

  test('a server from a template may say that it has no custom image', () => {
    const isValid = validatorOf(document, 'CreateServer')
    const server = { zone: 'eu-1-a', hostname: 'web', plan: 'tiny' }
    expect(isValid(server)).toBe(false)
    expect(isValid({ ...server, template: 'x' })).toBe(true)
    expect(isValid({ ...server, template: 'x', custom_image_id: null })).toBe(true)
    expect(isValid({ ...server, custom_image_id: 'x' })).toBe(true)
    expect(isValid({ ...server, template: 'x', custom_image_id: 'x' })).toBe(false)
  })

  test('tools say it in words: their schemas are objects without alternatives', () => {
    const { shown } = toolsOf(ROUTES).find(({ shown: { name } }) => name === 'create_server') ?? {}
    expect(shown?.description).toContain('Exactly one of template and custom_image_id is given.')
    expect(shown?.inputSchema).toMatchObject({ type: 'object', required: ['zone', 'hostname', 'plan'] })
    for (const tool of toolsOf(ROUTES)) {
      expect(tool.shown.inputSchema, tool.shown.name).not.toHaveProperty('oneOf')
      expect(tool.shown.inputSchema, tool.shown.name).not.toHaveProperty(EXACTLY_ONE)
    }
  })

  test('the help of commands says it', () => {
    const command = COMMANDS.find((each) => nameOf(each) === 'server create')
    const help = command === undefined ? '' : commandHelp(command)
    expect(help).toContain('{--template TEXT | --custom-image-id TEXT} [FLAGS]')
    expect(help).toMatch(/--template TEXT .*\(exactly one of this and --custom-image-id\)/)
  })
})
