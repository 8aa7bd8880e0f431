/** One configuration with a network, servers, a load balancer, a database and a Kubernetes cluster, as people have it:
 *  applied, changed, taken over into an empty state, and destroyed. */
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { PUBLIC_KEY } from '../e2e/customer.ts'
import { Workspace } from './workspace.ts'

const EXAMPLE = join(import.meta.dirname, '../../examples/terraform/shop/main.tf')
const isThere = inject('hasControlPlanes') === true
const title = isThere ? 'a whole application' : 'a whole application (not here: hasControlPlanes)'

/** What people call each. */
const NAMES = {
  'svccloud_network.shop': 'eu-1a/shop',
  'svccloud_ssh_key.admin': 'shop-admin',
  'svccloud_server.web[0]': 'eu-1a/web-1',
  'svccloud_server.web[1]': 'eu-1a/web-2',
  'svccloud_server.web[2]': 'web-3',
  'svccloud_load_balancer.entrance': 'gate',
  'svccloud_database.orders': 'shop-orders',
  'svccloud_kubernetes_cluster.jobs': 'shop-jobs',
  'svccloud_kubernetes_node_pool.workers': 'shop-jobs/workers',
} as const

describe.skipIf(!isThere)(title, () => {
  let workspace: Workspace
  const secrets: string[] = []

  beforeAll(async () => {
    workspace = await Workspace.open(await readFile(EXAMPLE, 'utf8'))
    await writeFile(join(workspace.folder, 'key.pub'), PUBLIC_KEY)
    await workspace.apply()
  })
  afterAll(() => workspace?.close())

  test('a second plan is empty', async () => {
    expect(await workspace.changes()).toEqual([])
  })

  test('it is changed in place', async () => {
    const text = await workspace.text('main.tf')
    const changed = text
      .replace('node_count = 1', 'node_count = 2')
      .replace('"entrance"\n', '"gate"\n')
      .replace('"0 3 * * *"', '"0 4 * * *"')
    await writeFile(join(workspace.folder, 'main.tf'), changed)
    const changes = await workspace.changes()
    expect(changes.map(({ address, change }) => [address, change.actions.join()]).toSorted()).toEqual([
      ['svccloud_database.orders', 'update'],
      ['svccloud_kubernetes_node_pool.workers', 'update'],
      ['svccloud_load_balancer.entrance', 'update'],
    ])
    await workspace.apply()
    expect(await workspace.changes()).toEqual([])
  })

  test('no secret is in the state, the plan or what was said', async () => {
    const headers = { authorization: `Bearer ${inject('terraformToken')}` }
    const read = async (path: string): Promise<unknown> =>
      await (await fetch(`${inject('terraformUrl')}${path}`, { headers })).json()
    const database = await workspace.attributes('svccloud_database', 'orders')
    const cluster = await workspace.attributes('svccloud_kubernetes_cluster', 'jobs')
    // as the API answers
    const { credentials } = (await read(`/v1/databases/${String(database['id'])}/credentials`)) as {
      readonly credentials: { readonly password: string }
    }
    const { token } = (await read(`/v1/kubernetes-clusters/${String(cluster['id'])}/token`)) as {
      readonly token: string
    }
    secrets.push(credentials.password, token)
    const said = [
      await workspace.text('terraform.tfstate'),
      await workspace.run('show', '-json', 'plan.bin'),
      await workspace.run('show', '-json'),
    ]
    for (const secret of secrets) for (const text of said) expect(text).not.toContain(secret)
  })

  test('it is taken over into an empty state', async () => {
    await rm(join(workspace.folder, 'terraform.tfstate'))
    for (const [address, name] of Object.entries(NAMES)) await workspace.run('import', '-input=false', address, name)
    const changes = await workspace.changes()
    // keys and user data are shown by no answer
    expect(changes.map(({ address, change }) => `${address} ${change.actions.join()}`).toSorted()).toEqual(
      [0, 1, 2].map((index) => `svccloud_server.web[${index}] update`),
    )
    await workspace.apply()
    expect(await workspace.changes()).toEqual([])
  })
})
