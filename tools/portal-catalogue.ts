/** What the portal knows of the API: its operations by operationId, and the bodies of those that have one. Everything
 *  comes from the routes, the commands and the rules of operations. */
import { z } from 'zod'
import { commandsOf, type Command } from '../cli/commands.ts'
import { OPERATION_KINDS, stepsOf } from '../domain/operations.ts'
import { exactlyOneIn, type Route } from '../kit/http/route.ts'
import { MANAGED } from '../resources/index.ts'
import { resourcesOf } from './definitions.ts'

const asText = (value: object): string => `${JSON.stringify(value, null, 2)}\n`

/** Members that are false, empty or absent are left out: a browser loads this. */
const compact = (value: Readonly<Record<string, unknown>>): object =>
  Object.fromEntries(
    Object.entries(value).filter(
      ([, member]) => member !== false && member !== null && member !== undefined && !isEmptyList(member),
    ),
  )
const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0

const operationOf = (route: Route, command: Command | undefined): object =>
  compact({
    method: route.method,
    path: route.path,
    permission: route.permission,
    staffRole: route.staffRole,
    isDestructive: route.isDestructive,
    isCredentialRead: route.isCredentialRead,
    hasSecrets: route.method === 'POST' && route.secretFields.length > 0,
    isPaged: route.query instanceof z.ZodObject && 'limit' in route.query.shape,
    starts: route.starts,
    command: command === undefined ? undefined : `${command.noun} ${command.verb}`,
  })

interface Schema {
  readonly [member: string]: unknown
  readonly properties?: Readonly<Record<string, unknown>>
}

/** The body as JSON schema, with the types of its flags on the command line. */
function bodyOf(route: Route, command: Command | undefined): object | undefined {
  if (!(route.body instanceof z.ZodObject)) return undefined
  const {
    $schema: _dialect,
    id: _name,
    ...schema
  } = z.toJSONSchema(z.strictObject(route.body.shape), {
    io: 'input',
    unrepresentable: 'any',
    reused: 'inline',
  }) as Schema // the schema of an object
  const flags = (command?.flags ?? []).filter(({ place }) => place === 'body')
  return {
    ...schema,
    ...compact({ exactlyOne: exactlyOneIn(route.body), takesDryRun: route.takesDryRun }),
    flags: Object.fromEntries(flags.map(({ field, type }) => [field, type])),
  }
}

const bodiesOf = (routes: readonly Route[], commands: ReadonlyMap<string, Command>): object =>
  Object.fromEntries(
    routes.flatMap((route) => {
      const body = bodyOf(route, commands.get(route.id))
      return body === undefined ? [] : [[route.id, body] as const]
    }),
  )

/** Text by file name of `portal/generated/`. Customers and operators have separate files: each portal loads one. */
export function portalFiles(routes: readonly Route[]): ReadonlyMap<string, string> {
  const filesFor = (audience: Route['audience'], prefix: string): readonly (readonly [string, string])[] => {
    const offered = routes.filter((route) => route.audience === audience)
    const commands = new Map(commandsOf(offered).map((command) => [command.route.id, command]))
    const operations = offered.map((route) => [route.id, operationOf(route, commands.get(route.id))] as const)
    return [
      [`${prefix}operations.json`, asText(Object.fromEntries(operations))],
      [`${prefix}bodies.json`, asText(bodiesOf(offered, commands))],
    ]
  }
  return new Map([
    ...filesFor('customer', ''),
    ...filesFor('operator', 'operator-'),
    ['terraform.json', asText(resourcesOf(MANAGED))],
    ['steps.json', asText(Object.fromEntries(OPERATION_KINDS.map((kind) => [kind, stepsOf(kind)])))],
  ])
}
