/** The registration of the webhook with the Kubernetes API: written here for a single process, and by a chart where the
 *  platform runs in a cluster. While it is missing nothing judges what people write, and no request tells the process
 *  so. It is looked at once a minute. */
import { isDeepStrictEqual } from 'node:util'
import { Unavailable } from '../../../domain/problem.ts'
import type { KubeObject, ResourceType } from '../../../kit/kube/object.ts'
import { ApiError, type Store } from '../../../kit/kube/store.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { Logger } from '../../../kit/sys/log.ts'
import { API_GROUP } from '../../../resources/kit/define.ts'
import type { Kind } from './kind.ts'
import { NAMESPACE_RULES, NAMESPACES_CONDITION, webhookRules } from './webhook.ts'

const ValidatingWebhookConfiguration: ResourceType<undefined> = {
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind: 'ValidatingWebhookConfiguration',
  plural: 'validatingwebhookconfigurations',
  scope: 'Cluster',
}
const TIMEOUT_SECONDS = 10
const LOOK_MILLISECONDS = 60_000
const WEBHOOKS = [`admission.${API_GROUP}`, `namespaces.${API_GROUP}`] as const

export interface Registration {
  readonly url: string
  /** PEM of the authority of the webhook's certificate. */
  readonly authority: string
  /** The webhook is never called for their writes: an API server that is down does not stop the platform itself. */
  readonly platformUsers: readonly string[]
  readonly kinds: readonly Kind[]
}

/** Nobody but the platform writes while the webhook cannot be reached. */
function webhooksOf({ url, authority, platformUsers, kinds }: Registration) {
  const people = { name: 'people', expression: `!(request.userInfo.username in ${JSON.stringify(platformUsers)})` }
  const common = {
    clientConfig: { url, caBundle: Buffer.from(authority).toString('base64') },
    admissionReviewVersions: ['v1'],
    sideEffects: 'NoneOnDryRun',
    failurePolicy: 'Fail',
    timeoutSeconds: TIMEOUT_SECONDS,
  }
  const [ofKinds, ofNamespaces] = WEBHOOKS
  return [
    { ...common, name: ofKinds, rules: webhookRules(kinds), matchConditions: [people] },
    {
      ...common,
      name: ofNamespaces,
      rules: NAMESPACE_RULES,
      matchConditions: [people, { name: 'of-the-platform', expression: NAMESPACES_CONDITION }],
    },
  ]
}

/** Brings the configuration of that name up to date. Throws ApiError and Unavailable. */
export function registerWebhook(store: Store, name: string, registration: Registration) {
  const draft = { metadata: { name }, webhooks: webhooksOf(registration), spec: undefined }
  return store.apply(ValidatingWebhookConfiguration, draft)
}

interface RegistrationParts {
  readonly store: Store
  readonly clock: Clock
  readonly log: Logger
  /** Of the `ValidatingWebhookConfiguration`. */
  readonly name: string
  /** What this process writes there; undefined where others write it. */
  readonly registration: Registration | undefined
}

/** Whether the Kubernetes API calls the webhook. */
export interface Registrar {
  isRegistered(): boolean
  /** Resolves when it no longer looks. */
  readonly ended: Promise<void>
}

/** Resolves once the webhook is registered, or, where others do that, once it is known whether it is; looks once a
 *  minute from then on, until the signal aborts. Throws ApiError and Unavailable when it cannot be written. */
export async function openRegistrar(
  { store, clock, log, name, registration }: RegistrationParts,
  signal: AbortSignal,
): Promise<Registrar> {
  let isRegistered: boolean | undefined
  let written: unknown

  const read = async () => webhooksIn(await store.get(ValidatingWebhookConfiguration, { name }))
  const write = async (wanted: Registration) => {
    written = webhooksIn(await registerWebhook(store, name, wanted))
    isRegistered = true
  }
  async function look(): Promise<void> {
    const found = await read()
    const isIntact =
      registration === undefined
        ? WEBHOOKS.every((webhook) => found?.some((each) => each.name === webhook))
        : isDeepStrictEqual(found, written)
    if (!isIntact && isRegistered !== false) log.warn('the webhook is not registered: writes are not judged', { name })
    if (isIntact && isRegistered === false) log.info('the webhook is registered again', { name })
    isRegistered = isIntact
    if (!isIntact && registration !== undefined) {
      await write(registration)
      log.info('the webhook is registered again', { name })
    }
  }
  /** Leaves what is known as it is when the Kubernetes API does not answer. */
  const lookIfPossible = () =>
    look().catch((error: unknown) => {
      if (!(error instanceof ApiError || error instanceof Unavailable)) throw error
      log.warn('it is not known whether the webhook is registered', { name, error })
    })

  async function watch(): Promise<void> {
    while (!signal.aborted) {
      await clock.sleep(LOOK_MILLISECONDS, signal)
      if (!signal.aborted) await lookIfPossible()
    }
  }

  if (registration === undefined) await lookIfPossible()
  else await write(registration)
  return { isRegistered: () => isRegistered === true, ended: watch() }
}

/** The webhooks of the configuration; undefined where there is none. */
const webhooksIn = (object: KubeObject<undefined> | undefined) =>
  (object as { readonly webhooks?: readonly { readonly name: string }[] } | undefined)?.webhooks // as its kind says
