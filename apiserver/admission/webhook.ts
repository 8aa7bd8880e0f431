/** What the Kubernetes API calls the webhook for. The embedded registration and the chart hold the same rules: both are
 *  made from the registered kinds. */
import type { ResourceType } from '../../kit/kube/object.ts'
import { API_GROUP } from '../../resources/define.ts'
import type { Kind } from './kind.ts'

export interface WebhookRule {
  readonly apiGroups: readonly string[]
  readonly apiVersions: readonly string[]
  readonly resources: readonly string[]
  readonly operations: readonly string[]
  readonly scope: ResourceType['scope']
}

/** One rule for each scope, with every kind that is not exempt. */
export const webhookRules = (kinds: readonly Kind[]): readonly WebhookRule[] =>
  (['Namespaced', 'Cluster'] as const).map((scope) => ({
    apiGroups: [API_GROUP],
    apiVersions: ['*'],
    resources: kinds
      .filter(({ resource, exemptBecause }) => resource.scope === scope && exemptBecause === undefined)
      .flatMap(({ resource: { plural } }) => [plural, `${plural}/status`]),
    operations: ['CREATE', 'UPDATE', 'DELETE'],
    scope,
  }))
