/** The rules by which the Kubernetes API calls the webhook. The embedded registration and the chart have the same
 *  rules: both are generated from the registered kinds. */
import type { ResourceType } from '../../../kit/kube/object.ts'
import { API_GROUP } from '../../../resources/kit/define.ts'
import type { Kind } from './kind.ts'

export interface WebhookRule {
  readonly apiGroups: readonly string[]
  readonly apiVersions: readonly string[]
  readonly resources: readonly string[]
  readonly operations: readonly string[]
  readonly scope: ResourceType['scope']
}

/** One rule for each scope, with every kind that is not exempt, and one for kinds that hosts hold. Agents write neither
 *  spec nor metadata of the latter, so that hosts keep working when the webhook is down. */
export const webhookRules = (kinds: readonly Kind[]): readonly WebhookRule[] => [
  ...(['Namespaced', 'Cluster'] as const).map((scope) => ({
    apiGroups: [API_GROUP],
    apiVersions: ['*'],
    resources: kinds
      .filter(({ resource, exemptBecause }) => resource.scope === scope && exemptBecause === undefined)
      .flatMap(({ resource: { plural } }) => [plural, `${plural}/status`]),
    operations: ['CREATE', 'UPDATE', 'DELETE'],
    scope,
  })),
  {
    apiGroups: [API_GROUP],
    apiVersions: ['*'],
    resources: kinds.filter(({ isHeldByHost }) => isHeldByHost === true).map(({ resource: { plural } }) => plural),
    operations: ['UPDATE', 'DELETE'],
    scope: 'Namespaced',
  },
]

/** Deletions of namespaces of accounts and nodes. The chart has the same rule. */
export const NAMESPACE_RULES: readonly WebhookRule[] = [
  { apiGroups: [''], apiVersions: ['v1'], resources: ['namespaces'], operations: ['DELETE'], scope: 'Cluster' },
]
export const NAMESPACES_CONDITION = 'request.name.startsWith("acct-") || request.name.startsWith("node-")'
