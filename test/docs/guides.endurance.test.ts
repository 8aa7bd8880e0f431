/** The customers' guides against the running product, whose guests are simulated: their commands as they are written,
 *  their configurations in an official client, and their program with the package as it is packed and installed. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { environment } from '../../kit/sys/process.ts'
import { VERSION } from '../../domain/version.ts'
import { Customer, PASSWORD } from '../e2e/customer.ts'
import { until } from '../eventually.ts'
import { clearAway, Product } from '../e2e/product.ts'
import { blocksOf, CUSTOMER_GUIDES, isAnyMissing, ROOT, scriptOf } from './blocks.ts'

const run = promisify(execFile)
const { PATH, LANG, HOME } = environment()

const missing = await isAnyMissing('curl', 'jq', 'ssh-keygen')

let folder: string
let product: Product
/** For what needs no separate person: sign-ups are few in a minute. */
let customer: Customer

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-guides-'))
  product = await Product.start({ data: join(folder, 'data'), flags: ['--hypervisor', 'simulated'], warnings: [] })
  customer = await Customer.signUp(() => product, 'anybody@example.com')
  await customer.addSshKey()
  await mkdir(join(folder, 'bin'))
  await symlink(join(ROOT, 'cli/svccloud.js'), join(folder, 'bin/svccloud'))
})
afterAll(() => clearAway(product, folder))

const hasNoServers = (person: Customer) =>
  until(
    'no servers to be left',
    async () => (await person.request<{ items: unknown[] }>('GET', '/v1/servers')).body.items,
    (items) => items.length === 0,
  )

test.runIf(!missing).each(CUSTOMER_GUIDES)('%s says what works', async (guide) => {
  const name = guide.replaceAll(/docs\/|\.md/g, '')
  const email = `${name}@example.com`
  const person = await Customer.signUp(() => product, email)
  const work = join(folder, name)
  await mkdir(work)
  await writeFile(join(work, 'guide.sh'), await scriptOf(guide))
  await run('bash', ['-eux', 'guide.sh'], {
    cwd: work,
    timeout: 240_000,
    maxBuffer: 16 * 1024 * 1024,
    env: {
      PATH: `${join(folder, 'bin')}${delimiter}${PATH}`,
      LANG,
      HOME: work,
      API: product.endpoints.api_url,
      TOKEN: person.token,
      EMAIL: email,
      SVCCLOUD_PASSWORD: PASSWORD,
    },
  })
  await hasNoServers(person)
})

interface Connection {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

/** The servers that a configuration names, whatever program it is for. */
const connectionsIn = (value: unknown): readonly Connection[] =>
  typeof value !== 'object' || value === null
    ? []
    : 'url' in value && 'headers' in value
      ? [value as Connection]
      : Object.values(value).flatMap(connectionsIn) // both are what such files hold

test('the configurations in the MCP guide connect', async () => {
  const connections = (await blocksOf('docs/mcp.md'))
    .filter(({ language }) => language === 'json')
    .flatMap(({ text }) => connectionsIn(JSON.parse(text)))
  expect(connections).toHaveLength(2)
  for (const { url, headers } of connections) {
    const client = new Client({ name: 'guide', version: '1' })
    const filled = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, value.replace(/\$\{[^}]+\}/, customer.token)]),
    )
    await client.connect(
      new StreamableHTTPClientTransport(new URL(url.replace('https://cloud.example.com', product.endpoints.api_url)), {
        requestInit: { headers: filled },
      }),
    )
    try {
      const names = (await client.listTools()).tools.map(({ name }) => name)
      expect(names).toEqual(expect.arrayContaining(['create_server', 'list_zones', 'list_ssh_keys']))
      expect(names.includes('list_audit_entries')).toBe(!url.includes('toolsets='))
    } finally {
      await client.close()
    }
  }
})

describe('the package', () => {
  let home: string
  let isInstalled = false

  /** Packs and installs as npm does for anybody. */
  beforeAll(async () => {
    home = join(folder, 'consumer')
    await mkdir(home)
    await run('npm', ['pack', '--silent', '--pack-destination', home], { cwd: ROOT })
    await writeFile(join(home, 'package.json'), '{"type": "module"}')
    isInstalled = await run(
      'npm',
      ['install', '--silent', '--prefer-offline', '--no-audit', '--no-fund', `./svccloud-${VERSION}.tgz`],
      { cwd: home },
    ).then(
      () => true,
      (error: Error) => {
        if (!/ENOTCACHED|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT/.test(error.message)) throw error
        return false
      },
    )
  })

  test('has the command, for npx', async ({ skip }) => {
    skip(!isInstalled, 'no package registry answers, and npm has not kept what the package needs')
    const svccloud = async (...line: string[]) =>
      (
        await run('npx', ['--no-install', 'svccloud', ...line], {
          cwd: home,
          env: { PATH, HOME, SVCCLOUD_URL: product.endpoints.api_url, SVCCLOUD_TOKEN: customer.token },
        })
      ).stdout
    expect(await svccloud('--version')).toBe(`svccloud ${VERSION}\n`)
    expect(await svccloud('help')).toContain('server')
    expect(await svccloud('zone', 'list', '-o', 'name')).toContain('eu-1a')
  })

  test('has the client, with which the programs of the REST guide compile and run', async ({ skip }) => {
    skip(!isInstalled, 'no package registry answers, and npm has not kept what the package needs')
    const programs = (await blocksOf('docs/rest.md')).filter(({ language }) => language === 'ts')
    const files = programs.map((_program, index) => `program-${index}.ts`)
    for (const [index, { text }] of programs.entries())
      await writeFile(
        join(home, `program-${index}.ts`),
        text.replace('http://127.0.0.1:8080', product.endpoints.api_url),
      )
    const compilerOptions = {
      strict: true,
      noUncheckedIndexedAccess: true,
      exactOptionalPropertyTypes: true,
      module: 'nodenext',
      target: 'es2024',
      lib: ['es2024', 'dom', 'dom.iterable'],
      noEmit: true,
      types: ['node'],
      typeRoots: [join(ROOT, 'node_modules/@types')],
    }
    await writeFile(join(home, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }))
    await run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', home]).catch(
      ({ stdout }: { stdout: string }) => expect(stdout).toBe(''),
    )
    const env = { PATH, SVCCLOUD_TOKEN: customer.token }
    const [stdout = ''] = await Promise.all(
      files.map(async (file) => (await run(process.execPath, [file], { cwd: home, env })).stdout),
    )
    expect(stdout).toMatch(/^typed started$/m)
    const id = stdout.trim().split('\n').at(-1) ?? ''
    await customer.finished((await customer.change('DELETE', `/v1/servers/${id}`)).id)
    await hasNoServers(customer)
  })
})
