/** The guide of nodes, run as it is written against the running product: two nodes of one zone that share storage, and
 *  a guest in real QEMU that leaves its node and notices nothing. */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { environment } from '../../kit/sys/process.ts'
import { isAnyMissing, scriptOf } from '../docs/blocks.ts'
import { Customer, PUBLIC_KEY } from './customer.ts'
import { clearAway, newFolder, Product } from './product.ts'

const run = promisify(execFile)
const missing = await isAnyMissing('curl', 'jq', 'kubectl', 'qemu-system-x86_64')

let folder: string
let product: Product | undefined

beforeAll(async () => {
  folder = await newFolder()
  if (!missing)
    product = await Product.start({
      data: join(folder, 'data'),
      flags: ['--hypervisor', 'qemu', '--nodes', 'eu-1a=2'],
      warnings: [],
    })
})
afterAll(() => clearAway(product, folder))

function running(): Product {
  if (product === undefined) throw new Error('the product was not started')
  return product
}
const nodeOf = async (id: string) =>
  (await running().query('select node from placement where server_id = $1', [id]))[0]?.['node']

test.runIf(!missing)(
  'the guide of nodes works, and servers keep running',
  async () => {
    const { endpoints } = running()
    const customer = await Customer.signUp(running, 'nodes@example.com')
    const {
      server: { id },
      operation,
    } = await customer.createServer({
      zone: 'eu-1a',
      hostname: 'web',
      plan: 'tiny',
      template: 'tiny-linux',
      ssh_keys: [PUBLIC_KEY],
    })
    expect((await customer.finished(operation.id)).status).toBe('succeeded')
    const read = async () =>
      (await customer.request<{ server: { started_at: string } }>('GET', `/v1/servers/${id}`)).body.server
    const { started_at } = await read()
    expect(await nodeOf(id)).toBe('eu-1a-1') // the one that the guide empties

    const guide = join(folder, 'guide.sh')
    await writeFile(guide, await scriptOf('docs/nodes.md'))
    const { PATH, LANG } = environment()
    const env = {
      PATH,
      LANG,
      HOME: folder,
      DATA: dirname(endpoints.operator_token_file ?? ''),
      OPERATOR: endpoints.operator_url,
      KUBECONFIG: endpoints.kubeconfig,
    }
    const { stdout } = await run('bash', ['-eux', guide], {
      cwd: folder,
      timeout: 300_000,
      maxBuffer: 16 * 1024 * 1024,
      env,
    })
    for (const line of [
      'node.cordon succeeded',
      'node.uncordon succeeded',
      'node.maintenance succeeded',
      'node.agent_upgrade succeeded',
      'node.provision cancelled',
    ])
      expect(stdout).toContain(line)
    expect(await nodeOf(id)).toBe('eu-1a-2')
    expect(await read()).toMatchObject({ state: 'started', started_at, maintenance: null })
  },
  400_000,
)
