/** Routes as commands: `list_servers` is `server list`, `change_server_plan` is `server change-plan`. No command is
 *  written by hand: path parameters become arguments, query and body become flags. */
import { z } from 'zod'
import { exactlyOneIn, type Route } from '../kit/http/route.ts'
import { MANAGED } from '../resources/index.ts'
import { fixedIn } from '../resources/kit/managed.ts'

export interface Flag {
  /** As typed, without its dashes. */
  readonly flag: string
  /** As in the API. */
  readonly field: string
  readonly place: 'query' | 'body'
  readonly type: 'text' | 'integer' | 'boolean' | 'list' | 'map' | 'json'
  readonly choices: readonly string[]
  readonly isRequired: boolean
  /** Of what is created: no command changes it later. */
  readonly isFixed: boolean
  readonly isNullable: boolean
  readonly description: string
  readonly defaultValue: unknown
  /** Its values are usually in files: `@PATH` reads one. */
  readonly isFromFile: boolean
}

const FROM_FILES: readonly string[] = ['public_key', 'ssh_keys', 'content', 'user_data', 'certificate', 'private_key']

export interface Parameter {
  /** As in the path. */
  readonly name: string
  /** The resource of an `id`, from the path before it: in a list of backups of a storage, the storage. */
  readonly noun: string
}

export interface Command {
  readonly noun: string
  readonly verb: string
  readonly route: Route
  /** Path parameters in order. */
  readonly parameters: readonly Parameter[]
  readonly flags: readonly Flag[]
  /** The body requires exactly one of these. */
  readonly exactlyOne: readonly Flag[]
}

/** Commands sorted by name. Throws when two routes give the same command. */
export function commandsOf(routes: readonly Route[]): readonly Command[] {
  const commands = routes.filter(isCommand).map(commandOf)
  const names = commands.map(nameOf)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw new Error(`two operations have the same command ${twice}`)
  return commands.sort((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1))
}

export const nameOf = ({ noun, verb }: Command): string => `${noun} ${verb}`

/** Routes that have a command written by hand: `search TEXT`. */
const WRITTEN: readonly string[] = ['search_resources']

/** Routes that a token may call and a shell can show. The console has its own command. */
const isCommand = (route: Route): boolean =>
  route.audience === 'customer' &&
  !WRITTEN.includes(route.id) &&
  route.credentials.includes('token') &&
  route.readsBodyAs === 'json' &&
  route.mediaType !== 'text/event-stream' &&
  route.budget !== 'console'

function commandOf(route: Route): Command {
  const parameters = [...route.path.matchAll(/([\w-]+)\/\{(\w+)\}/g)].map(([, collection = '', name = '']) => ({
    name,
    noun: collection.split('-').map(singular).join('-'),
  }))
  const noun = MANAGED.find(({ routes }) => routes.create === route)
  const body = flagsOf(route.body, 'body', noun && fixedIn(noun))
  const exactlyOne = exactlyOneIn(route.body)
  return {
    ...namesOf(route),
    route,
    parameters,
    flags: [...flagsOf(route.query, 'query'), ...body],
    exactlyOne: body.filter(({ field }) => exactlyOne.includes(field)),
  }
}

/** The noun is the part of the path that the operationId also contains; the verb is the rest of the operationId. */
function namesOf({ id, path }: Route): { readonly noun: string; readonly verb: string } {
  const [verb = '', ...rest] = id.split('_')
  const words = rest.map(singular)
  const segments = path
    .split('/')
    .filter((segment) => segment !== '' && segment !== 'v1' && !segment.startsWith('{'))
    .map((segment) => segment.split('-').map(singular))
  const [collection = []] = segments
  // `list_kubernetes_versions` belongs to Kubernetes clusters, as its path does.
  if (collection.length > 1 && words[0] === collection[0] && indexOf(words, collection) < 0) {
    const verbs = verb === 'get' || verb === 'list' ? rest.slice(1) : [verb, ...rest.slice(1)]
    return { noun: collection.join('-'), verb: verbs.join('-') }
  }
  const found = [...segments.filter(([first]) => first !== 'account'), ['account']]
    .map((noun) => ({ noun, at: indexOf(words, noun) }))
    .find(({ at }) => at >= 0)
  const noun = found?.noun ?? words
  const others =
    found === undefined
      ? []
      : [...rest.slice(0, found.at), ...rest.slice(found.at + noun.length)].filter((word) => word !== 'account')
  const isRead = verb === 'get' || verb === 'list'
  return { noun: noun.join('-'), verb: (isRead && others.length > 0 ? others : [verb, ...others]).join('-') }
}

const singular = (word: string): string =>
  word.endsWith('ies') ? `${word.slice(0, -3)}y` : /(ss|us|is|kubernetes)$/.test(word) ? word : word.replace(/s$/, '')
const indexOf = (words: readonly string[], part: readonly string[]): number =>
  words.findIndex((_word, at) => part.every((word, offset) => words[at + offset] === word))

interface Property {
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly description?: string
  readonly default?: unknown
  readonly items?: Property
  readonly additionalProperties?: Property | boolean
  readonly anyOf?: readonly Property[]
  readonly maxItems?: number
}

function flagsOf(schema: z.ZodType | null, place: Flag['place'], fixed: readonly string[] = []): readonly Flag[] {
  if (!(schema instanceof z.ZodObject)) return []
  // Without its name, because a named schema would be a reference to itself.
  const { properties = {}, required = [] } = z.toJSONSchema(z.strictObject(schema.shape), {
    io: 'input',
    unrepresentable: 'any',
    reused: 'inline',
    // the schema of an object, with the members that are read here
  }) as { readonly properties?: Readonly<Record<string, Property>>; readonly required?: readonly string[] }
  return Object.entries(properties)
    .filter(([, property]) => isOffered(property))
    .map(([field, property]) => ({
      ...flagOf(field, property, place),
      isRequired: required.includes(field),
      isFixed: fixed.includes(field),
    }))
}

/** Options that accept only their neutral value are not worth a flag. */
const isOffered = ({ type, const: only, maxItems }: Property): boolean =>
  type !== 'null' && only === undefined && maxItems !== 0

function flagOf(field: string, property: Property, place: Flag['place']): Omit<Flag, 'isRequired' | 'isFixed'> {
  const { anyOf = [] } = property
  const value = anyOf.find(({ type }) => type !== 'null') ?? property
  const { description = property.description ?? '' } = value
  return {
    flag: field.replaceAll('_', '-'),
    field,
    place,
    type: typeOf(value, place),
    choices: [...(value.enum ?? value.items?.enum ?? [])].map(String),
    isNullable:
      anyOf.some(({ type }) => type === 'null') || (Array.isArray(property.type) && property.type.includes('null')),
    description,
    defaultValue: property.default,
    isFromFile: FROM_FILES.includes(field),
  }
}

function typeOf({ type, items, additionalProperties, enum: choices }: Property, place: Flag['place']): Flag['type'] {
  const [only] = [type].flat().filter((name) => name !== 'null')
  if (place === 'query' && choices !== undefined && choices.every((choice) => choice === 'true' || choice === 'false'))
    return 'boolean'
  if (only === 'string') return 'text'
  if (only === 'integer' || only === 'number') return 'integer'
  if (only === 'boolean') return 'boolean'
  if (only === 'array' && items?.type === 'string') return 'list'
  if (only === 'object' && typeof additionalProperties === 'object' && additionalProperties.type === 'string')
    return 'map'
  return 'json'
}
