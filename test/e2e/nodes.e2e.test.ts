/** The guide of nodes, run as it is written against the running product: two nodes of one zone with simulated guests and real agents. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { environment } from '../../kit/sys/process.ts'
import { Customer } from './customer.ts'
import { Product } from './product.ts'

const run = promisify(execFile)
const ROOT = join(import.meta.dirname, '../..')
const shellBlocks = (markdown: string): readonly string[] => [...markdown.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map((match) => match[1] ?? '')
const PUBLIC_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBv7nS1hUS8W4v8Yw0OeTZcJ6pHJXnpmmGBR9XdKLMDu ada@example.com'
const isMissing = async (program: string) => run('/bin/sh', ['-c', `command -v ${program}`]).then(() => false, () => true)
const missing = (await Promise.all(['curl', 'jq', 'kubectl'].map(isMissing))).some(Boolean)

let folder: string
let product: Product

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-nodes-'))
  product = await Product.start({ data: join(folder, 'data'), flags: ['--hypervisor', 'simulated', '--nodes', 'eu-1a=2'] })
})
afterAll(async () => {
  await product?.stop()
  await rm(folder, { recursive: true, force: true })
})

test.runIf(!missing)('the guide of nodes says what works, and servers go on meanwhile', async () => {
  const customer = await Customer.signUp(() => product, 'nodes@example.com')
  const { server: { id }, operation } = await customer.createServer({ zone: 'eu-1a', hostname: 'web', plan: 'tiny', template: 'tiny-linux', ssh_keys: [PUBLIC_KEY] })
  expect((await customer.finished(operation.id)).status).toBe('succeeded')
  const before = await customer.request<{ server: { started_at: string } }>('GET', `/v1/servers/${id}`)

  const blocks = shellBlocks(await readFile(join(ROOT, 'docs/nodes.md'), 'utf8'))
  expect(blocks.length).toBeGreaterThanOrEqual(8)
  const { PATH, LANG } = environment()
  const { stdout } = await run('bash', ['-eu', '-o', 'pipefail', '-c', blocks.join('\n')], {
    cwd: folder, timeout: 240_000, maxBuffer: 16 * 1024 * 1024,
    env: { PATH, LANG, HOME: folder, DATA: dirname(product.endpoints.operator_token_file ?? ''), OPERATOR: product.endpoints.operator_url, KUBECONFIG: product.endpoints.kubeconfig },
  })
  for (const line of ['node.cordon succeeded', 'node.uncordon succeeded', 'node.maintenance succeeded', 'node.agent_upgrade succeeded', 'node.provision cancelled']) expect(stdout).toContain(line)
  const after = await customer.request<{ server: { started_at: string } }>('GET', `/v1/servers/${id}`)
  expect(after.body.server).toMatchObject({ state: 'started', started_at: before.body.server.started_at, maintenance: null })
}, 300_000)
