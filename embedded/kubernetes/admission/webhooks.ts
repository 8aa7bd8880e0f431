/** Validating webhooks: sends a write to all webhooks whose rules match, in parallel, and refuses it at the first
 *  denial. */
import { defined } from '../../../domain/defined.ts'
import { newUuid, type Random } from '../../../kit/sys/random.ts'
import { matchesLabels } from '../access/rbac.ts'
import type { Hooks } from '../core/definition.ts'
import type { Admission, Admit } from '../core/engine.ts'
import type { KubeObject } from '../core/object.ts'
import { toScale } from '../core/scale.ts'
import { asList, asObject, asString, at, strings, type Json, type JsonObject } from '../core/json.ts'
import {
  badRequest,
  fieldInvalid,
  fieldNotSupported,
  fieldRequired,
  internal,
  Refusal,
  type Cause,
} from '../core/status.ts'
import type { Store } from '../core/store.ts'
import { celValue, compileCondition } from '../schema/cel.ts'

const WEBHOOKS_KEY = 'admissionregistration.k8s.io/validatingwebhookconfigurations'
const TIMEOUT_SECONDS = 10
const TIMEOUT_MOST_SECONDS = 30

export interface WebhookCall {
  readonly url: string
  /** PEM of the trusted authority; empty for the authorities of the system. */
  readonly authority: string
  readonly timeoutSeconds: number
  readonly body: string
}

/** Sends a review and returns the body of the response. Throws when there is none. */
export type CallWebhook = (call: WebhookCall) => Promise<string>

export interface WebhookOptions {
  readonly store: Store
  readonly random: Random
  readonly call: CallWebhook
}

export function webhookAdmission({ store, random, call }: WebhookOptions): Admit {
  return (admission) => {
    const table = store.table(WEBHOOKS_KEY)
    if (table.size() === 0 || admission.definition.group === 'admissionregistration.k8s.io') return undefined
    const matching = [...table.entries()]
      .flatMap(([, configuration]) => asList(configuration.webhooks).map(asObject))
      .filter((webhook) => isMatch(webhook, admission, store))
    return matching.length === 0
      ? undefined
      : Promise.all(matching.map((webhook) => ask(webhook, admission, newUuid(random), call))).then((warnings) => ({
          warnings: warnings.flat(),
        }))
  }
}

function isMatch(webhook: JsonObject, admission: Admission, store: Store): boolean {
  const { definition, namespace, object, old } = admission
  if (!asList(webhook.rules).some((rule) => ruleMatches(asObject(rule), admission))) return false
  const home = definition.storageKey === '/namespaces' ? (object ?? old) : store.table('/namespaces').get(namespace)
  if (home && !matchesLabels(webhook.namespaceSelector, home.metadata.labels ?? {})) return false
  return (
    [object, old].some(
      (one) => one !== undefined && matchesLabels(webhook.objectSelector, one.metadata.labels ?? {}),
    ) && conditionsHold(webhook, admission)
  )
}

const firstLineOf = (error: unknown): string =>
  error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)

/** Whether all match conditions are true. A condition that cannot be evaluated counts as an unreachable webhook. */
function conditionsHold(webhook: JsonObject, admission: Admission): boolean {
  const conditions = asList(webhook.matchConditions).map(asObject)
  if (conditions.length === 0) return true
  const { object, oldObject, ...request } = reviewOf(admission, '')
  const variables = {
    request: celValue(request, undefined),
    object: celValue(object ?? null, undefined),
    oldObject: celValue(oldObject ?? null, undefined),
  }
  try {
    return conditions.every(({ expression }) => compileCondition(asString(expression))(variables) === true)
  } catch (error) {
    if (webhook.failurePolicy === 'Ignore') return false
    throw internal(
      `failed evaluating a match condition of webhook ${JSON.stringify(asString(webhook.name))}: ${firstLineOf(error)}`,
    )
  }
}

function conditionFaults({ name, expression }: JsonObject, field: string): Cause[] {
  const missing = asString(name) === '' ? [fieldRequired(`${field}.name`)] : []
  try {
    compileCondition(asString(expression))
    return missing
  } catch (error) {
    return [
      ...missing,
      fieldInvalid(`${field}.expression`, asString(expression), `compilation failed: ${firstLineOf(error)}`),
    ]
  }
}

const has = (list: Json | undefined, wanted: string): boolean =>
  strings(list).some((one) => one === '*' || one === wanted)

function ruleMatches(
  { apiGroups, apiVersions, resources, operations, scope }: JsonObject,
  { operation, definition, subresource }: Admission,
): boolean {
  const wanted = definition.resource + (subresource === '' ? '' : `/${subresource}`)
  const isNamed = strings(resources).some(
    (pattern) =>
      pattern === wanted ||
      pattern === '*/*' ||
      (pattern === '*' && subresource === '') ||
      pattern === `${definition.resource}/*` ||
      (subresource !== '' && pattern === `*/${subresource}`),
  )
  const isInScope = scope === undefined || scope === '*' || (scope === 'Namespaced') === definition.isNamespaced
  return (
    isNamed &&
    isInScope &&
    has(operations, operation) &&
    has(apiGroups, definition.group) &&
    has(apiVersions, definition.version)
  )
}

async function ask(
  webhook: JsonObject,
  admission: Admission,
  uid: string,
  call: CallWebhook,
): Promise<readonly string[]> {
  const name = asString(webhook.name)
  if (admission.isDryRun && !['None', 'NoneOnDryRun'].includes(asString(webhook.sideEffects))) {
    throw badRequest(`admission webhook ${JSON.stringify(name)} does not support dry run`)
  }
  let response: JsonObject
  try {
    response = await answerOf(webhook, admission, uid, call)
  } catch (error) {
    if (webhook.failurePolicy === 'Ignore') return []
    throw internal(
      `failed calling webhook ${JSON.stringify(name)}: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
  if (response.allowed !== true) throw denial(name, asObject(response.status))
  return strings(response.warnings)
}

async function answerOf(
  webhook: JsonObject,
  admission: Admission,
  uid: string,
  call: CallWebhook,
): Promise<JsonObject> {
  const { url, caBundle } = asObject(webhook.clientConfig)
  if (typeof url !== 'string')
    throw new Error('this server reaches webhooks by clientConfig.url only: it has no network of services')
  const timeoutSeconds = Math.min(TIMEOUT_MOST_SECONDS, Number(webhook.timeoutSeconds ?? TIMEOUT_SECONDS))
  const body = JSON.stringify({
    kind: 'AdmissionReview',
    apiVersion: 'admission.k8s.io/v1',
    request: reviewOf(admission, uid),
  })
  const answered = await call({
    url,
    authority: Buffer.from(asString(caBundle), 'base64').toString(),
    timeoutSeconds,
    body,
  })
  const response = at(JSON.parse(answered) as Json, 'response') // validated below
  if (at(response, 'uid') !== uid) throw new Error('the response does not carry the uid of the request')
  return asObject(response)
}

function reviewOf(admission: Admission, uid: string): JsonObject {
  const { definition, namespace, name, subresource, operation, user, object, old, isDryRun, fieldManager } = admission
  const { group, version, resource } = definition
  const isScale = subresource === 'scale'
  const kind = isScale
    ? { group: 'autoscaling', version: 'v1', kind: 'Scale' }
    : { group, version, kind: definition.kind }
  const shown = (one: KubeObject | undefined): JsonObject | null =>
    one === undefined ? null : isScale ? toScale(definition, one) : one
  return {
    uid,
    kind,
    resource: { group, version, resource },
    ...(subresource === '' ? {} : { subResource: subresource }),
    requestKind: kind,
    requestResource: { group, version, resource },
    ...(subresource === '' ? {} : { requestSubResource: subresource }),
    ...(name === '' ? {} : { name }),
    ...(namespace === '' ? {} : { namespace }),
    operation,
    userInfo: { username: user.name, ...defined({ uid: user.uid }), groups: user.groups },
    object: shown(object),
    oldObject: shown(old),
    dryRun: isDryRun,
    options: {
      kind: `${operation[0]}${operation.slice(1).toLowerCase()}Options`,
      apiVersion: 'meta.k8s.io/v1',
      ...(fieldManager === '' ? {} : { fieldManager }),
      ...admission.deleteOptions,
    },
  }
}

function denial(name: string, { code, reason, message }: JsonObject): Refusal {
  const explanation = asString(message) || asString(reason)
  const text =
    `admission webhook ${JSON.stringify(name)} denied the ` +
    `request${explanation === '' ? ' without explanation' : `: ${explanation}`}`
  return new Refusal(typeof code === 'number' && code >= 400 ? code : 400, asString(reason), text)
}

/** Adds defaults to configurations and validates them. */
export const webhookConfigurationHooks: Hooks = {
  prepare: (object) => ({
    ...object,
    webhooks: asList(object.webhooks).map((webhook) => ({
      failurePolicy: 'Fail',
      matchPolicy: 'Equivalent',
      namespaceSelector: {},
      objectSelector: {},
      timeoutSeconds: TIMEOUT_SECONDS,
      ...asObject(webhook),
      rules: asList(at(webhook, 'rules')).map((rule) => ({ scope: '*', ...asObject(rule) })),
    })),
  }),
  validate: (object) =>
    asList(object.webhooks).flatMap((webhook, index) => webhookFaults(asObject(webhook), `webhooks[${index}]`)),
}

function urlFaults(url: Json | undefined, field: string): Cause[] {
  if (url === undefined) return []
  const scheme = URL.canParse(asString(url)) ? new URL(asString(url)).protocol.slice(0, -1) : ''
  return scheme === 'https'
    ? []
    : [fieldInvalid(field, scheme, "'https' is the only allowed URL scheme; desired format: https://host[/path]")]
}

function webhookFaults(
  { name, clientConfig, sideEffects, admissionReviewVersions, failurePolicy, matchConditions }: JsonObject,
  field: string,
): Cause[] {
  return [
    ...(asString(name) === '' ? [fieldRequired(`${field}.name`)] : []),
    ...(at(clientConfig, 'url') === undefined && at(clientConfig, 'service') === undefined
      ? [fieldRequired(`${field}.clientConfig`, 'exactly one of url or service is required')]
      : []),
    ...(asString(name) === '' || /^[^.]+(\.[^.]+){2,}$/.test(asString(name))
      ? []
      : [fieldInvalid(`${field}.name`, name, 'should be a domain with at least three segments separated by dots')]),
    ...urlFaults(at(clientConfig, 'url'), `${field}.clientConfig.url`),
    ...(sideEffects === undefined
      ? [fieldRequired(`${field}.sideEffects`, 'must specify one of None, NoneOnDryRun')]
      : []),
    ...(sideEffects === undefined || sideEffects === 'None' || sideEffects === 'NoneOnDryRun'
      ? []
      : [fieldNotSupported(`${field}.sideEffects`, sideEffects, ['None', 'NoneOnDryRun'])]),
    ...(strings(admissionReviewVersions).includes('v1')
      ? []
      : [fieldRequired(`${field}.admissionReviewVersions`, 'must specify one of v1, v1beta1')]),
    ...(failurePolicy === 'Fail' || failurePolicy === 'Ignore'
      ? []
      : [fieldNotSupported(`${field}.failurePolicy`, failurePolicy ?? '', ['Fail', 'Ignore'])]),
    ...asList(matchConditions).flatMap((condition, index) =>
      conditionFaults(asObject(condition), `${field}.matchConditions[${index}]`),
    ),
  ]
}
