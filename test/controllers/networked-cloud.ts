/** A cloud in one process whose controllers and agent run and whose zone has private networks. */
import type { Database } from '../../db/kit/open.ts'
import { Plan, Template, Zone } from '../../resources/catalog/index.ts'
import { PublicPool, type PublicPoolSpec } from '../../resources/public-pool/index.ts'
import { type Cloud, openCloud, ZONE } from './cloud.ts'
import { until } from './until.ts'

export interface NetworkedCloud {
  readonly cloud: Cloud
  stop(): Promise<void>
}

export interface NetworkedCloudOptions {
  /** Further ones, which are as `tiny-linux` is. */
  readonly templates?: readonly string[]
  /** Further ones, which are as `tiny` is. */
  readonly plans?: readonly string[]
  /** By use, such as `{ server_ipv4: '198.51.100.0/24' }`. */
  readonly pools?: Readonly<Partial<Record<PublicPoolSpec['use'], string>>>
}

export async function openNetworkedCloud(
  db: Database,
  { templates = [], plans = [], pools = {} }: NetworkedCloudOptions = {},
): Promise<NetworkedCloud> {
  const cloud = await openCloud(db)
  const { kubectl } = cloud
  const stops = [cloud.startControllers(), cloud.startAgent()]
  const template = await kubectl.get(Template, { name: 'tiny-linux' })
  const plan = await kubectl.get(Plan, { name: 'tiny' })
  if (template === undefined || plan === undefined) throw new Error('a cloud has the template and the plan of tests')
  for (const name of templates) await kubectl.create(Template, { metadata: { name }, spec: template.spec })
  for (const name of plans) await kubectl.create(Plan, { metadata: { name }, spec: plan.spec })
  for (const [use, cidr] of Object.entries(pools)) {
    const family = cidr.includes(':') ? 'ipv6' : 'ipv4'
    const spec = { zone: ZONE, family, cidr, use } as PublicPoolSpec // has defaults
    await kubectl.create(PublicPool, { metadata: { name: use.replaceAll('_', '-') }, spec })
  }
  await until(
    'pools',
    () => db.selectFrom('public_pool').select('id').execute(),
    (found) => found.length === Object.keys(pools).length,
  )
  await until(
    'private networks',
    () => kubectl.get(Zone, { name: ZONE }),
    (zone) => zone?.status?.hasPrivateNetworks === true,
  )
  return {
    cloud,
    async stop() {
      for (const stop of stops) await stop()
      await cloud.close()
    },
  }
}
