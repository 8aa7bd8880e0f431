/** Review resources, which are answered at once and never stored: own identity, own rights, rights of others,
 *  verification of a token, request of a token. */
import { defined } from '../../../domain/defined.ts'
import { toSeconds } from '../../../kit/sys/clock.ts'
import { checkType, parseObject } from '../core/body.ts'
import { json, entryKey, type Answer, type Engine } from '../core/engine.ts'
import { asObject, asString, at, isObject, strings, type JsonObject } from '../core/json.ts'
import type { User } from '../core/object.ts'
import { fieldInvalid, fieldRequired, forbidden, invalid, notFound } from '../core/status.ts'
import type { Write } from '../core/change.ts'
import type { Attributes } from './rbac.ts'
import { issueAccountToken } from './service-accounts.ts'

const TOKEN_LEAST_SECONDS = 600
const TOKEN_MOST_SECONDS = 2 ** 32
const TOKEN_DEFAULT_SECONDS = 3_600

export function review(engine: Engine, { target, request, user }: Write): Answer {
  const { definition } = target
  const { object } = parseObject(request.body, request.headers['content-type'])
  checkType(object, definition)
  const answer = ANSWERS[definition.kind]
  if (!answer) throw notFound(definition, '')
  return json(
    201,
    JSON.stringify({
      kind: definition.kind,
      apiVersion: object.apiVersion,
      metadata: {
        ...asObject(object.metadata),
        ...(definition.kind === 'SelfSubjectReview' ? { creationTimestamp: toSeconds(engine.clock.now()) } : {}),
      },
      ...answer(engine, object, user, target.namespace),
    }),
  )
}

type Answering = (engine: Engine, object: JsonObject, user: User, namespace: string) => JsonObject

const userInfo = ({ name, uid, groups, extra }: User): JsonObject => ({
  username: name,
  ...defined({ uid }),
  groups,
  ...defined({ extra }),
})

const ANSWERS: Readonly<Record<string, Answering>> = {
  SelfSubjectReview: (_engine, _object, user) => ({ status: { userInfo: userInfo(user) } }),
  SelfSubjectAccessReview: (engine, object, user) => access(engine, object, user),
  SubjectAccessReview: (engine, object) => access(engine, object, subjectOf(object)),
  SelfSubjectRulesReview: (engine, object, user) => {
    const rules = engine.authorizer.rulesOf(user, asString(at(object, 'spec', 'namespace')))
    return {
      spec: object.spec ?? {},
      status: {
        incomplete: false,
        nonResourceRules: rules.filter(({ nonResourceURLs }) => nonResourceURLs !== undefined),
        resourceRules: rules.filter(({ nonResourceURLs }) => nonResourceURLs === undefined),
      },
    }
  },
  TokenReview: (engine, object) => {
    const found = engine.authenticate(asString(at(object, 'spec', 'token')))
    return {
      spec: object.spec ?? {},
      status: found
        ? { authenticated: true, user: userInfo(found), audiences: ['https://kubernetes.default.svc.cluster.local'] }
        : { user: {}, error: '[invalid bearer token]' },
    }
  },
}

const subjectOf = (object: JsonObject): User => {
  const { user, uid, groups } = asObject(object.spec)
  return { name: asString(user), ...(typeof uid === 'string' ? { uid } : {}), groups: strings(groups) }
}

function access(engine: Engine, object: JsonObject, user: User): JsonObject {
  const spec = asObject(object.spec)
  const attributes = attributesOf(spec)
  if (!attributes)
    throw invalid({ group: 'authorization.k8s.io', kind: 'SubjectAccessReview' }, '', [
      fieldInvalid(
        'spec.resourceAttributes',
        null,
        'exactly one of nonResourceAttributes or resourceAttributes must be specified',
      ),
    ])
  const isAllowed = engine.authorizer.allows(user, attributes)
  return { spec, status: { allowed: isAllowed } }
}

function attributesOf({ resourceAttributes, nonResourceAttributes }: JsonObject): Attributes | undefined {
  if (isObject(resourceAttributes)) {
    const { verb, group, resource, subresource, namespace, name } = resourceAttributes
    const part = asString(subresource)
    return {
      verb: asString(verb),
      group: asString(group),
      resource: asString(resource) + (part === '' ? '' : `/${part}`),
      namespace: asString(namespace),
      name: asString(name),
    }
  }
  if (!isObject(nonResourceAttributes)) return undefined
  return {
    verb: asString(nonResourceAttributes.verb),
    path: asString(nonResourceAttributes.path),
    group: '',
    resource: '',
    namespace: '',
    name: '',
  }
}

/** POST serviceaccounts/{name}/token */
export async function requestToken(engine: Engine, { target, request }: Write): Promise<Answer> {
  const { definition, namespace, name } = target
  const { object } = parseObject(request.body, request.headers['content-type'])
  const kind = { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest', isCustom: false }
  checkType(object, kind)
  const account = engine.store.table(definition.storageKey).get(entryKey(namespace, name))
  if (!account) throw notFound(definition, name)
  if (account.metadata.deletionTimestamp !== undefined)
    throw forbidden(definition, name, 'the service account is going away')
  const seconds = at(object, 'spec', 'expirationSeconds') ?? TOKEN_DEFAULT_SECONDS
  if (typeof seconds !== 'number') throw invalid(kind, '', [fieldRequired('spec.expirationSeconds')])
  if (seconds < TOKEN_LEAST_SECONDS)
    throw invalid(kind, '', [
      fieldInvalid('spec.expirationSeconds', seconds, 'may not specify a duration less than 10 minutes'),
    ])
  if (seconds > TOKEN_MOST_SECONDS)
    throw invalid(kind, '', [
      fieldInvalid('spec.expirationSeconds', seconds, 'may not specify a duration larger than 2^32 seconds'),
    ])
  await engine.store.durable()
  const audiences = strings(at(object, 'spec', 'audiences'))
  const { token, expiresAt } = issueAccountToken(engine, account, audiences, seconds)
  const metadata = { name, namespace, creationTimestamp: toSeconds(engine.clock.now()) }
  const spec = {
    audiences: audiences.length > 0 ? audiences : ['https://kubernetes.default.svc.cluster.local'],
    expirationSeconds: seconds,
    boundObjectRef: null,
  }
  return json(
    201,
    JSON.stringify({
      kind: 'TokenRequest',
      apiVersion: 'authentication.k8s.io/v1',
      metadata,
      spec,
      status: { token, expirationTimestamp: toSeconds(expiresAt) },
    }),
  )
}
