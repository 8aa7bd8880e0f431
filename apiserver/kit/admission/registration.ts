/** Registers the webhook with the Kubernetes API. A chart installs the same configuration where the platform runs in a
 *  cluster. */
import type { ResourceType } from '../../../kit/kube/object.ts'
import type { Store } from '../../../kit/kube/store.ts'
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
const NAME = 'svccloud'
const TIMEOUT_SECONDS = 10

export interface Registration {
  readonly url: string
  /** PEM of the authority of the webhook's certificate. */
  readonly authority: string
  /** The webhook is never called for their writes: an API server that is down does not stop the platform itself. */
  readonly platformUsers: readonly string[]
  readonly kinds: readonly Kind[]
}

/** Nobody but the platform writes while the webhook cannot be reached. */
function webhookConfiguration({ url, authority, platformUsers, kinds }: Registration) {
  const people = { name: 'people', expression: `!(request.userInfo.username in ${JSON.stringify(platformUsers)})` }
  const common = {
    clientConfig: { url, caBundle: Buffer.from(authority).toString('base64') },
    admissionReviewVersions: ['v1'],
    sideEffects: 'NoneOnDryRun',
    failurePolicy: 'Fail',
    timeoutSeconds: TIMEOUT_SECONDS,
  }
  return {
    metadata: { name: NAME },
    webhooks: [
      { ...common, name: `admission.${API_GROUP}`, rules: webhookRules(kinds), matchConditions: [people] },
      {
        ...common,
        name: `namespaces.${API_GROUP}`,
        rules: NAMESPACE_RULES,
        matchConditions: [people, { name: 'of-the-platform', expression: NAMESPACES_CONDITION }],
      },
    ],
  }
}

/** Brings the configuration up to date; other processes may do the same. Throws ApiError. */
export async function registerWebhook(store: Store, registration: Registration): Promise<void> {
  await store.apply(ValidatingWebhookConfiguration, { ...webhookConfiguration(registration), spec: undefined })
}
