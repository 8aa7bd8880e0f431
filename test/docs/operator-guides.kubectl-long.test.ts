/** The operators' guides: their commands as they are written, with kubectl as the administrator, against the running
 *  product with simulated guests; their manifests as a server would take them. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { environment } from '../../kit/sys/process.ts'
import { toolPath } from '../../tools/cluster/build.ts'
import { Customer } from '../e2e/customer.ts'
import { clearAway, Product } from '../e2e/product.ts'
import { blocksOf, OPERATOR_GUIDES, ROOT, scriptOf } from './blocks.ts'

const run = promisify(execFile)

let folder: string
let product: Product
let env: Record<string, string | undefined>

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-operator-guides-'))
  product = await Product.start({ data: join(folder, 'data'), flags: ['--hypervisor', 'simulated'], warnings: [] })
  const customer = await Customer.signUp(() => product, 'operated@example.com')
  const [account] = await product.query('select id from account')
  const { PATH, LANG, HOME } = environment()
  env = {
    PATH: `${dirname(toolPath('kubectl'))}${delimiter}${PATH}`,
    LANG,
    HOME,
    KUBECACHEDIR: join(folder, 'cache'),
    KUBECONFIG: product.endpoints.kubeconfig,
    DATA: product.data,
    API: product.endpoints.api_url,
    TOKEN: customer.token,
    ACCOUNT: String(account?.['id']),
  }
})
afterAll(() => clearAway(product, folder))

/** A folder with everything that a checkout has, into which commands may write. */
async function checkout(name: string): Promise<string> {
  const work = join(folder, name)
  await mkdir(work)
  for (const entry of await readdir(ROOT)) await symlink(join(ROOT, entry), join(work, entry))
  return work
}

test.each(OPERATOR_GUIDES)('%s says what works', async (guide) => {
  const work = await checkout(guide.replaceAll('/', '-'))
  await writeFile(join(work, 'guide.sh'), await scriptOf(guide))
  await run('bash', ['-eux', 'guide.sh'], { cwd: work, env, timeout: 240_000, maxBuffer: 16 * 1024 * 1024 })
})

test('the manifests in the guides are taken', async () => {
  const manifests = (await Promise.all(OPERATOR_GUIDES.map(blocksOf)))
    .flat()
    .filter(({ language, text, reason }) => language === 'yaml' && reason === undefined && /^kind:/m.test(text))
  expect(manifests.length).toBeGreaterThan(0)
  for (const [index, { page, line, text }] of manifests.entries()) {
    const file = join(folder, `manifest-${index}.yaml`)
    await writeFile(file, text)
    await expect(
      run('kubectl', ['apply', '--dry-run=server', '-f', file], { env }),
      `${page}:${line}`,
    ).resolves.toMatchObject({ stdout: expect.stringContaining('created') })
  }
})
