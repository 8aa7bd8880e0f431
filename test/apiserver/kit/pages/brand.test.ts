import { fork } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse, stringify } from 'yaml'
import { BrandFile, brandedPage, openBrand, PLAIN_BRAND, senderOf } from '../../../../apiserver/kit/pages/brand.ts'
import { openPortal, portalPages } from '../../../../apiserver/kit/pages/portal.ts'
import { MAIL_NAMES, MAILS } from '../../../../domain/mail/mails.ts'
import { staticFileOf } from '../../../../kit/http/static-files.ts'
import { startServer } from '../../../../kit/http/server.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { silentLog } from '../../../../kit/sys/log.ts'
import { systemRandom } from '../../../../kit/sys/random.ts'
import { environment } from '../../../../kit/sys/process.ts'
import { SETTINGS_VARIABLE, SettingsRefused } from '../../../../kit/sys/settings.ts'

const SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script><rect width="8" height="8"/></svg>'
/** Of one pixel. */
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
/** Says that it is 5,000 pixels wide. */
const WIDE = Buffer.from(PNG)
WIDE.writeUInt32BE(5_000, 16)

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-brand-'))
  const files: Readonly<Record<string, string | Buffer>> = {
    'logo.svg': `<?xml version="1.0"?>\n<!-- ours -->\n${SVG}`,
    'logo-dark.png': PNG,
    'icon.png': PNG,
    'wide.png': WIDE,
    'large.svg': `${SVG}${' '.repeat(256 * 1024)}`,
    'page.svg': `<html><body>${SVG}</body></html>`,
    'entities.svg': `<!DOCTYPE svg [<!ENTITY a "b">]>${SVG}`,
    'named.png': SVG,
    'cut.png': PNG.subarray(0, 12),
    stamp: 'a',
    '.vite/manifest.json': '{}',
    'index.html':
      '<!doctype html><head><title>svccloud</title><link rel="icon" href="/icon.svg" /></head><body></body>',
    'operator.html': '<!doctype html><head><title>svccloud operations</title></head><body></body>',
  }
  await mkdir(join(folder, '.vite'))
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content)
})
afterAll(() => rm(folder, { recursive: true, force: true }))

async function open(content: unknown) {
  const path = join(folder, 'brand.yaml')
  await writeFile(path, typeof content === 'string' ? content : stringify(content))
  return openBrand(path)
}

const WHOLE = {
  name: 'Wolke & <b>"7"</b>',
  logo: 'logo.svg',
  logo_dark: 'logo-dark.png',
  icon: 'icon.png',
  accent: { light: '#0B6B3A', dark: '#6fd6a0' },
  links: { imprint: 'https://example.com/imprint', support: 'mailto:help@example.com' },
  language: 'de',
  mails: {
    de: { footer: 'Beispiel GmbH', texts: { verify_email: { body: 'Hier:\n{link}' } } },
    en: { texts: { password_changed: { subject: '{product}: new password' } } },
  },
}

describe('docs/white-label.md', () => {
  it('has a file that is accepted', async () => {
    const page = await readFile('docs/white-label.md', 'utf8')
    const example = /```yaml\n([\s\S]*?)```/.exec(page)?.[1] ?? ''
    await writeFile(join(folder, 'logo-dark.svg'), SVG)
    expect(await open(example)).toMatchObject({ language: 'de', page: { name: 'Example Cloud' } })
    expect(Object.keys(parse(example) as object).toSorted()).toEqual(Object.keys(BrandFile.shape).toSorted())
  })

  it('has every mail with its fields', async () => {
    const page = await readFile('docs/white-label.md', 'utf8')
    const rows = [...page.matchAll(/^\| `(\w+)` \| [^|]+ \|(.*)\|$/gm)].map(([, name = '', fields = '']) => [
      name,
      [...fields.matchAll(/`\{(\w+)\}`/g)].map(([, field]) => field),
    ])
    const mails = rows.filter(([name]) => Object.hasOwn(MAILS, String(name)))
    expect(Object.fromEntries(mails)).toEqual(
      Object.fromEntries(MAIL_NAMES.map((name) => [name, Object.keys(MAILS[name])])),
    )
  })
})

describe('a brand', () => {
  it('is ours without a file', async () => {
    expect(await openBrand(undefined)).toBe(PLAIN_BRAND)
    expect(PLAIN_BRAND).toMatchObject({ language: 'en', mails: { product: 'svccloud' }, page: undefined })
  })

  it('is what its file says', async () => {
    const { language, mails, page, files } = await open(WHOLE)
    expect(language).toBe('de')
    expect(mails).toMatchObject({ product: WHOLE.name, footers: { de: 'Beispiel GmbH' } })
    expect(mails.texts?.de?.verify_email?.body).toBe('Hier:\n{link}')
    expect(page).toMatchObject({ name: WHOLE.name, links: WHOLE.links })
    const types = [page?.logo, page?.logo_dark, page?.icon, page?.style].map((path) => files.get(path ?? '')?.type)
    expect(types).toEqual(['image/svg+xml', 'image/png', 'image/png', 'text/css; charset=utf-8'])
    for (const path of files.keys()) expect(path).toMatch(/^\/brand\/[\da-f]{16}\.(svg|png|css)$/)
    expect(files.get(page?.style ?? '')?.bytes.toString()).toMatch(
      /^:root\{--accent:light-dark\(#0b6b3a,#6fd6a0\);.*;--on-accent:light-dark\(#ffffff,#0d0e22\)\}\n$/,
    )
  })

  it.each(Object.keys(BrandFile.shape))('has a description of %s', (field) => {
    expect(BrandFile.shape[field as keyof typeof BrandFile.shape].meta()?.description).toMatch(/\.$/)
  })

  it('may have any one of its settings alone', async () => {
    for (const [name, value] of Object.entries(WHOLE)) expect(await open({ [name]: value }), name).toBeDefined()
  })

  it.each([
    ['name', { name: '' }, 'name: Too small'],
    ['a long name', { name: 'a'.repeat(41) }, 'name: Too big'],
    ['a name with a hidden mark', { name: 'a\u202Eb' }, 'name: contains characters that cannot be seen'],
    ['an unknown setting', { colour: '#ffffff' }, 'colour: there is no such setting'],
    ['an unknown link', { links: { blog: 'https://example.com' } }, 'links.blog: there is no such setting'],
    [
      'a link that runs',
      { links: { imprint: 'javascript:alert(1)' } },
      'links.imprint: must start with https: or mailto:',
    ],
    ['a link with blanks before it', { links: { imprint: ' \u0001javascript:alert(1)' } }, 'links.imprint: must start'],
    ['a link of data', { links: { terms: 'data:text/html,x' } }, 'links.terms: must start with https: or mailto:'],
    [
      'a link without TLS',
      { links: { status: 'http://example.com' } },
      'links.status: must start with https: or mailto:',
    ],
    ['a link of a path', { links: { privacy: '/privacy' } }, 'links.privacy: must start with https: or mailto:'],
    ['a colour that is none', { accent: { light: 'red', dark: '#6fd6a0' } }, 'accent.light: must look like #0b6b3a'],
    ['a style as a colour', { accent: { light: '#fff;}body{', dark: '#6fd6a0' } }, 'accent.light: must look like'],
    ['a colour for one theme', { accent: { light: '#0b6b3a' } }, 'accent.dark: '],
    [
      'a pale colour',
      { accent: { light: '#ffe600', dark: '#6fd6a0' } },
      /accent\.light: with #ffe600, .* Choose a darker/,
    ],
    ['a dim colour', { accent: { light: '#0b6b3a', dark: '#0b1b6b' } }, /accent\.dark: with .* Choose a lighter/],
    ['a language without texts', { language: 'fr' }, 'language: '],
    ['a file elsewhere', { logo: '../logo.svg' }, 'logo: must name an .svg or .png file beside this one'],
    ['a file of another type', { logo: 'logo.gif' }, 'logo: must name an .svg or .png file beside this one'],
    ['a missing file', { icon: 'missing.svg' }, /icon: \S+missing\.svg cannot be read: ENOENT/],
    ['a large file', { logo: 'large.svg' }, /logo: \S+large\.svg has more than 262144 bytes/],
    ['a wide image', { logo: 'wide.png' }, 'logo: wide.png must have 1 to 2048 pixels on each side'],
    ['a page', { logo: 'page.svg' }, 'logo: page.svg is not the image that its name says'],
    ['entities', { logo: 'entities.svg' }, 'logo: entities.svg is not the image that its name says'],
    ['an image of another type', { icon: 'named.png' }, 'icon: named.png is not the image that its name says'],
    ['a cut image', { icon: 'cut.png' }, 'icon: cut.png is not the image that its name says'],
    [
      'an unknown mail',
      { mails: { de: { texts: { newsletter: { body: 'x' } } } } },
      /mails\.de\.texts(\.newsletter)?: /,
    ],
    ['an unknown language of mails', { mails: { fr: {} } }, 'mails.fr: there is no such setting'],
    [
      'an unknown field of a mail',
      { mails: { en: { texts: { verify_email: { body: 'Go to {url}\n{link}' } } } } },
      'mails.en.texts.verify_email: there is no field {url}, only {link}, {product}',
    ],
    [
      'a mail without its link',
      { mails: { de: { texts: { reset_password: { body: 'Viel Glück.' } } } } },
      'mails.de.texts.reset_password: {link} must be alone on a line',
    ],
    ['a footer with hidden marks', { mails: { en: { footer: 'a\u0000' } } }, 'mails.en.footer: contains characters'],
    ['a list', ['name'], 'it must contain settings by their names'],
    ['nothing', '', 'it must contain settings by their names'],
    ['another format', '{name: [', /it is not YAML: /],
  ])('with %s is refused', async (_, content, fault) => {
    const refusal = await open(content).catch((error: unknown) => error)
    expect(refusal).toBeInstanceOf(SettingsRefused)
    const [head, ...lines] = String((refusal as Error).message).split('\n')
    expect(head).toBe(
      `SVCCLOUD_BRAND_FILE (brandFile): ${join(folder, 'brand.yaml')} cannot be used ` +
        '(docs/white-label.md says what it may contain):',
    )
    expect(lines.some((line) => (typeof fault === 'string' ? line.startsWith(`- ${fault}`) : fault.test(line)))).toBe(
      true,
    )
    expect(lines.every((line) => line.startsWith('- ') && line.endsWith('.'))).toBe(true)
  })

  it('is refused with all of its faults at once', async () => {
    await expect(
      open({ logo: 'missing.svg', icon: 'page.svg', accent: { light: '#ffe600', dark: '#0b1b6b' } }),
    ).rejects.toThrow(/accent\.light[^]*accent\.dark[^]*logo: [^]*icon: /)
  })

  it('that is refused ends the API server, which says why', async () => {
    await writeFile(join(folder, 'brand.yaml'), 'links: { imprint: "javascript:alert(1)" }')
    const settings = { databaseUrl: 'postgres://127.0.0.1:1/none', brandFile: join(folder, 'brand.yaml') }
    const child = fork('apiserver/main.ts', [], {
      env: { PATH: environment()['PATH'], [SETTINGS_VARIABLE]: JSON.stringify(settings) },
      execArgv: [],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    const said: unknown[] = []
    child.on('message', (message) => said.push(message))
    expect(await new Promise((resolve) => child.once('close', resolve))).toBe(1)
    expect(said).toEqual([{ refused: expect.stringContaining('- links.imprint: must start with https: or mailto:.') }])
  }, 120_000)

  it('names the sender who has no name', async () => {
    const brand = await open({ name: 'Wolke' })
    expect(senderOf('no-reply@example.com', brand)).toBe('Wolke <no-reply@example.com>')
    expect(senderOf('Ada <ada@example.com>', brand)).toBe('Ada <ada@example.com>')
    expect(senderOf('no-reply@localhost', PLAIN_BRAND)).toBe('svccloud <no-reply@localhost>')
  })
})

describe('pages', () => {
  const attributeOf = (html: string) => /<meta name="brand" content="([^"]*)" \/>/.exec(html)?.[1] ?? ''
  const decoded = (text: string) =>
    text.replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')

  it('have the brand as a text', async () => {
    const { page } = await open(WHOLE)
    if (page === undefined) throw new Error('there is a file')
    const plain = staticFileOf(
      '.html',
      Buffer.from('<head><title>svccloud operations</title><link rel="icon" href="/icon.svg" /></head><body></body>'),
    )
    const branded = brandedPage(plain, page)
    const html = branded.bytes.toString()
    expect(html).toContain('<title>Wolke &amp; &lt;b&gt;&quot;7&quot;&lt;/b&gt; operations</title>')
    expect(html).not.toContain('<b>')
    expect(html).not.toContain('/icon.svg')
    expect(html).toContain(`<link rel="icon" href="${page.icon}" />`)
    expect(html).toContain(`<link rel="stylesheet" href="${page.style}" />`)
    expect(JSON.parse(decoded(attributeOf(html)))).toMatchObject({ name: WHOLE.name, links: WHOLE.links })
    expect(branded.tag).not.toBe(plain.tag)
    const [, gzip] = branded.coded
    expect(gunzipSync(gzip?.bytes ?? '').toString()).toBe(html)
  })

  it.each(['$&', '$1', "$'", '</title><script>alert(1)</script>'])('show the name %s as it is', async (name) => {
    const { page } = await open({ name })
    if (page === undefined) throw new Error('there is a file')
    const html = brandedPage(
      staticFileOf('.html', Buffer.from('<title>svccloud</title></head>')),
      page,
    ).bytes.toString()
    expect(html).not.toContain('<script')
    expect(decoded(/<title>([^<]*)<\/title>/.exec(html)?.[1] ?? '')).toBe(name)
    expect(JSON.parse(decoded(attributeOf(html)))).toMatchObject({ name })
  })

  it.each(['index.html', 'operator.html'] as const)('of %s and images are served to its listener', async (page) => {
    const brand = await open(WHOLE)
    const portal = await openPortal(folder, brand)
    const server = await startServer({
      host: '127.0.0.1',
      port: 0,
      clock: systemClock,
      random: systemRandom,
      log: silentLog,
      pages: portalPages({ portal, page }, () => false),
      service: async () => ({ status: 404, headers: {}, body: '' }),
    })
    try {
      const origin = `http://127.0.0.1:${server.port}`
      const html = await fetch(`${origin}/servers`, { headers: { accept: 'text/html' } })
      expect(html.headers.get('content-security-policy')).toMatch(
        /^default-src 'none'; script-src 'self'; style-src 'self';/,
      )
      expect(await html.text()).toContain('<title>Wolke &amp;')
      const logo = await fetch(`${origin}${brand.page?.logo}`)
      expect(Object.fromEntries(logo.headers)).toMatchObject({
        'content-type': 'image/svg+xml',
        'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox",
        'x-content-type-options': 'nosniff',
        'cross-origin-resource-policy': 'same-origin',
        'cache-control': 'public, max-age=31536000, immutable',
      })
      expect(await logo.text()).toContain(SVG)
      const other = await fetch(`${origin}/brand/0000000000000000.svg`)
      expect(other.status).toBe(404)
    } finally {
      await server.stop(0)
    }
  })
})
