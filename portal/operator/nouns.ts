/** THE list of nouns of the operators' portal, in the order of the navigation. */
import type { Noun } from '../nouns/noun.ts'
import { account } from './nouns/account/index.ts'
import { coupon } from './nouns/coupon.ts'
import { kubernetesHost } from './nouns/kubernetes-host.ts'
import { node } from './nouns/node/index.ts'
import { migration, operation } from './nouns/operation/index.ts'
import { privateCloudRequest } from './nouns/private-cloud-request.ts'
import { publicPool } from './nouns/public-pool.ts'
import { quotaRequest } from './nouns/quota-request.ts'
import { supportSession } from './nouns/support-session.ts'
import { template } from './nouns/template.ts'

export const OPERATOR_NOUNS: readonly Noun[] = [
  node,
  publicPool,
  kubernetesHost,
  template,
  operation,
  migration,
  account,
  quotaRequest,
  privateCloudRequest,
  supportSession,
  coupon,
]
