/** Routes say which fields of their answers are secrets: what is kept for an Idempotency-Key leaves them out. */
import { expect, test } from 'vitest'
import { z } from 'zod'
import { takesIdempotencyKey } from '../../kit/http/idempotency.ts'
import { isPlainRead } from '../../kit/http/representation.ts'
import type { Route } from '../../kit/http/route.ts'
import { ROUTES } from '../../resources/index.ts'

/** How fields with secrets are called, in whatever depth. */
const SECRET_NAMES =
  'credential|secret|secret_access_key|token|password|passphrase|kubeconfig|private_key|codes|handoff_url|' +
  'otpauth_uri|presigned_url'
const SECRET = new RegExp(`(^|_)(${SECRET_NAMES})$`)

/** Secrets by other names. */
const OTHERS: Readonly<Record<string, readonly string[]>> = { create_support_session: ['code'] }

/** Called so, and none. */
const HARMLESS: Readonly<Record<string, string>> = {
  csrf_token: 'is worth nothing without the cookie of its session',
}

type Schema = Record<string, unknown>
const isSchema = (value: unknown): value is Schema => typeof value === 'object' && value !== null

/** The schemas that a schema stands for or consists of: what it refers to, its alternatives, its items. */
function partsOf(schema: unknown, root: Schema): readonly Schema[] {
  if (!isSchema(schema)) return []
  const { $ref, $defs: _definitions, ...own } = schema
  const referred = typeof $ref === 'string' ? $ref.split('/').slice(1) : undefined
  const target = referred?.reduce<unknown>((at, name) => (isSchema(at) ? at[name] : undefined), root)
  const inner = ['anyOf', 'oneOf', 'allOf', 'items', 'additionalProperties'].flatMap((name) => own[name] ?? [])
  return [own, ...[...inner, ...(target === undefined ? [] : [target])].flatMap((part) => partsOf(part, root))]
}

const fieldsOf = (schema: unknown, root: Schema): readonly (readonly [string, unknown])[] =>
  partsOf(schema, root).flatMap(({ properties }) => (isSchema(properties) ? Object.entries(properties) : []))

/** Whether it is a text or a list of such. */
const isText = (schema: unknown, root: Schema): boolean =>
  partsOf(schema, root).some(({ type }) => type === 'string') && fieldsOf(schema, root).length === 0

const hasSecret = ([name, schema]: readonly [string, unknown], root: Schema): boolean =>
  (SECRET.test(name) && !(name in HARMLESS) && isText(schema, root)) ||
  fieldsOf(schema, root).some((field) => hasSecret(field, root))

/** Fields at the top of the answers that are secrets or hold some, by the names of fields. */
function secretFieldsOf({ id, answers }: Route): readonly string[] {
  const fields = Object.values(answers).flatMap((answer) => {
    if (answer === null) return []
    const root: Schema = { ...z.toJSONSchema(answer, { unrepresentable: 'any', io: 'output' }) }
    return fieldsOf(root, root).filter((field) => hasSecret(field, root))
  })
  return [...new Set([...(OTHERS[id] ?? []), ...fields.map(([field]) => field)])].sort()
}

const mutations = ROUTES.filter(({ method }) => method !== 'GET')

test('every mutation whose answer has a secret names the field', () => {
  const namesOf = (routes: readonly Route[], of: (route: Route) => readonly string[]) =>
    Object.fromEntries(routes.map((route) => [route.id, of(route)] as const).filter(([, fields]) => fields.length > 0))
  expect(namesOf(mutations, ({ secretFields }) => [...secretFields].sort())).toEqual(namesOf(mutations, secretFieldsOf))
})

test('a read whose answer has a secret is a credential read, or open to sessions only', () => {
  const silent = ROUTES.filter(
    (route) => route.method === 'GET' && secretFieldsOf(route).length > 0 && !route.isCredentialRead,
  )
  expect(silent.map(({ id }) => id)).toEqual([])
})

/** Worth nothing alone, and still not to be guessed from the length of an answer; and addresses that are
 *  credentials themselves. */
const GUESSED = /(^|_)(csrf_token|hosted_\w+_url)$/

test('an answer with a secret is not compressed', () => {
  const compressed = ROUTES.filter(isPlainRead).filter((route) => {
    const root: Schema = { ...z.toJSONSchema(route.answers[200] ?? z.null(), { unrepresentable: 'any', io: 'output' }) }
    const isGuessed = (schema: unknown): boolean =>
      fieldsOf(schema, root).some(([name, inner]) => GUESSED.test(name) || isGuessed(inner))
    return isGuessed(root) || secretFieldsOf(route).length > 0
  })
  expect(compressed.map(({ id }) => id)).toEqual([])
})

test('some of them take an Idempotency-Key', () => {
  expect(
    ROUTES.filter((route) => takesIdempotencyKey(route) && route.secretFields.length > 0).map(({ id }) => id),
  ).toEqual(
    expect.arrayContaining([
      'create_database',
      'restore_database',
      'enable_object_storage',
      'rotate_object_storage_keys',
    ]),
  )
})
