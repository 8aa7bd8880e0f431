/** Buckets and objects in the browser, with the real engine: bodies go through signed addresses, over TLS. */
import { readdir, readFile } from 'node:fs/promises'
import { Agent, get } from 'node:https'
import { join } from 'node:path'
import type { BrowserContext, Download, Page } from 'playwright-core'
import { describe, expect, inject, it } from 'vitest'
import { readWhole } from '../../../kit/http/bounded.ts'
import { accessFaults, focused, overflow, pressUntilFocused } from './kit/access.ts'
import { open, type PageOptions, usePortal } from './kit/browser.ts'
import type { Person } from './kit/person.ts'

const portal = usePortal()
const storageUrl = portal.endpoints.object_storage_url ?? ''

const HOSTILE = ['<img src=x onerror=alert(1)>.html', 'a+b c&d=e?f#g.txt', 'ü 日本 \u202egnp.exe', 'quote\'"`$(x)']

const VIEWS = [
  ['light', 320],
  ['dark', 390],
  ['light', 768],
  ['dark', 1360],
] as const

interface Bucket {
  readonly person: Person
  readonly name: string
  readonly path: string
}

async function bucketOf(person: Person): Promise<Bucket> {
  const { body } = await person.customer.request<{ readonly object_storage: { readonly bucket_prefix: string } }>(
    'POST',
    '/v1/object-storage',
    { zone: 'eu-1a' },
  )
  const name = `${body.object_storage.bucket_prefix}photos`
  const created = await person.customer.request('POST', '/v1/object-storage/eu-1a/buckets', { name })
  expect(created.status).toBe(201)
  return { person, name, path: `/object-storage/eu-1a/${name}` }
}

/** A page of a browser that trusts the certificate, and may open the object storage. */
const pageOf = (person: Person, options: PageOptions = {}): Promise<Page> =>
  portal.page({ as: person, objectStorage: 'trusted', ...options })

const file = (name: string, text = `of ${name}`) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(text) })

async function choose(page: Page, ...files: ReturnType<typeof file>[]): Promise<void> {
  const [chooser] = await Promise.all([
    page.waitForEvent('filechooser'),
    page.getByRole('button', { name: 'Upload files' }).click(),
  ])
  await chooser.setFiles(files)
}

const uploadOf = (page: Page, name: string) => page.getByRole('group', { name, exact: true })
const stored = (page: Page, name: string) => uploadOf(page, name).getByText('Stored', { exact: true }).waitFor()
const rowOf = (page: Page, name: string) =>
  page.getByRole('table', { name: 'Objects' }).getByRole('row').filter({ hasText: name })

/** Chooses from the actions of an object. */
async function act(page: Page, name: string, action: string): Promise<void> {
  await rowOf(page, name).getByRole('button').click()
  await page.getByRole('menuitem', { name: action }).click()
}

/** The next file that any tab gets. */
const nextDownload = (context: BrowserContext): Promise<Download> =>
  new Promise((resolve) => {
    for (const page of context.pages()) page.once('download', resolve)
    context.once('page', (page) => page.once('download', resolve))
  })

async function contentOf(download: Download): Promise<string> {
  const chunks: Buffer[] = []
  // without an encoding, its pieces are bytes
  for await (const chunk of await download.createReadStream()) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

/** As somebody else gets it, who has only the link. */
const read = (url: string) =>
  new Promise<{ readonly text: string; readonly disposition: string | undefined }>((resolve, reject) => {
    get(url, { agent: new Agent({ rejectUnauthorized: false }) }, (answer) => {
      readWhole(answer, 1e6).then(
        (body) => resolve({ text: body.toString(), disposition: answer.headers['content-disposition'] }),
        reject,
      )
    }).once('error', reject)
  })

/** Texts of the logs of the product. */
async function logs(): Promise<string> {
  const folder = join(inject('portalData') ?? '', 'logs')
  const names = await readdir(folder)
  return (await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')))).join('\n')
}

describe('a bucket', () => {
  it('is made, filled, looked at, shared, emptied and deleted', async () => {
    const person = await portal.signUp()
    const { body } = await person.customer.request<{ readonly object_storage: { readonly bucket_prefix: string } }>(
      'POST',
      '/v1/object-storage',
      { zone: 'eu-1a' },
    )
    const prefix = body.object_storage.bucket_prefix
    const page = await pageOf(person, { allows: [/status of 409 .*\/buckets\//, /status of 400 .*\/buckets$/] })
    await open(page, '/object-storage')
    await page.getByRole('button', { name: 'Create bucket' }).click()
    const dialog = page.getByRole('dialog', { name: 'Create bucket' })
    await dialog.getByLabel('Name').fill('Photos')
    await dialog.getByRole('button', { name: 'Create bucket' }).click()
    await dialog.getByText('must be 3 to 63 lower-case letters').first().waitFor()
    await dialog.getByLabel('Name').fill(`${prefix}photos`)
    await dialog.getByRole('button', { name: 'Create bucket' }).click()
    await page.getByRole('heading', { level: 1, name: `${prefix}photos` }).waitFor()

    await choose(page, ...HOSTILE.slice(0, 2).map((name) => file(name)))
    for (const name of HOSTILE.slice(0, 2)) await stored(page, name)
    await rowOf(page, HOSTILE[0] ?? '').waitFor()

    const downloading = nextDownload(page.context())
    await act(page, HOSTILE[1] ?? '', 'Download')
    const downloaded = await downloading
    expect(await contentOf(downloaded)).toBe(`of ${HOSTILE[1]}`)

    await act(page, HOSTILE[0] ?? '', 'Share by a link')
    const share = page.getByRole('dialog', { name: 'Share by a link' })
    await share.getByRole('button', { name: 'Create link' }).click()
    await share.getByText(/^Valid until/).waitFor()
    const link = await share.locator('code').innerText()
    expect(new URL(link).searchParams.get('X-Amz-Expires')).toBe('900')
    expect(await read(link)).toMatchObject({
      text: `of ${HOSTILE[0]}`,
      disposition: expect.stringMatching(/^attachment; /),
    })
    await share.getByRole('button', { name: 'Done' }).click()
    expect(page.url()).not.toContain('X-Amz')
    expect(await logs()).not.toContain('X-Amz-Signature')

    await open(page, '/object-storage')
    const buckets = page.getByRole('table', { name: 'Buckets in eu-1a' })
    const remove = async (): Promise<void> => {
      await buckets.getByRole('button', { name: `Actions of ${prefix}photos` }).click()
      await page.getByRole('menuitem', { name: 'Delete' }).click()
      await page.getByRole('alertdialog').getByRole('button', { name: 'Delete' }).click()
    }
    await remove()
    await page.getByRole('alertdialog').getByText('The bucket is not empty.').waitFor()
    await page.getByRole('alertdialog').getByRole('button', { name: 'Cancel' }).click()
    await buckets.getByRole('link', { name: `${prefix}photos` }).click()
    for (const name of HOSTILE.slice(0, 2)) {
      await act(page, name, 'Delete')
      await page.getByRole('alertdialog').getByText(name).first().waitFor()
      await page.getByRole('alertdialog').getByRole('button', { name: 'Delete' }).click()
      await rowOf(page, name).waitFor({ state: 'detached' })
    }
    await page.getByText('There is nothing here yet.').waitFor()
    await open(page, '/object-storage')
    await remove()
    await page.getByText('There are no buckets yet.').waitFor()
  })

  it('has folders, which the address names, and hostile names do nothing', async () => {
    const { person, path } = await bucketOf(await portal.signUp())
    const page = await pageOf(person)
    await open(page, `${path}?folder=2026%2F%3Cb%3E%20%26%2F`)
    await page.getByRole('heading', { level: 1, name: '<b> &' }).waitFor()
    await choose(page, ...HOSTILE.map((name) => file(name)))
    const shown = HOSTILE.map((name) => name.replace('\u202e', '\\u202e'))
    for (const name of shown) await stored(page, name)
    for (const name of shown) await rowOf(page, name).waitFor()
    await page.getByLabel('Names that begin with').fill('a+')
    await rowOf(page, 'ü 日本').waitFor({ state: 'detached' })
    await rowOf(page, 'a+b c').waitFor()
    await page.getByRole('navigation', { name: 'Where you are' }).getByRole('link', { name: '2026' }).click()
    await rowOf(page, '<b> &/').getByRole('link').click()
    await page.getByRole('heading', { level: 1, name: '<b> &' }).waitFor()
    for (const name of shown) await rowOf(page, name).waitFor()
    expect(await page.locator('main img, main b').count()).toBe(0)
  })

  it('keeps what has the name until a person replaces it, and says why a name is refused', async () => {
    const { person, path } = await bucketOf(await portal.signUp())
    const page = await pageOf(person, { allows: [/status of 412 /, /status of 400 .*\/presign$/] })
    await open(page, path)
    await choose(page, file('a.txt', 'one'))
    await stored(page, 'a.txt')
    await uploadOf(page, 'a.txt').getByRole('button', { name: 'Dismiss' }).click()
    await choose(page, file('a.txt', 'other'), file('.sgwtmp'))
    await uploadOf(page, 'a.txt').getByText('There is an object named a.txt already.').waitFor()
    await uploadOf(page, '.sgwtmp').getByText('Names with ".sgwtmp" are reserved here.').waitFor()
    await rowOf(page, 'a.txt').getByText('3 B').waitFor()
    await uploadOf(page, 'a.txt').getByRole('button', { name: 'Replace' }).click()
    await stored(page, 'a.txt')
    await rowOf(page, 'a.txt').getByText('5 B').waitFor()
  })

  it('is used by the keyboard alone', async () => {
    const { person, path } = await bucketOf(await portal.signUp())
    const page = await pageOf(person)
    // from the beginning: a key press may be faster than the first listener
    page.on('filechooser', () => undefined)
    await open(page, path)
    await pressUntilFocused(page, 'Tab', /^button "Upload files"$/)
    const [chooser] = await Promise.all([page.waitForEvent('filechooser'), page.keyboard.press('Enter')])
    await chooser.setFiles([file('a.txt')])
    await stored(page, 'a.txt')
    await rowOf(page, 'a.txt').waitFor()
    await pressUntilFocused(page, 'Tab', /^button "Actions of a.txt"$/)
    await page.keyboard.press('Enter')
    await pressUntilFocused(page, 'ArrowDown', /^menuitem "Delete"$/)
    await page.keyboard.press('Enter')
    await page.getByRole('alertdialog').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('alertdialog').waitFor({ state: 'detached' })
    await expect.poll(() => focused(page)).toBe('button "Actions of a.txt"')
  })

  it('says what to do when the browser does not trust the object storage', async () => {
    const { person, path } = await bucketOf(await portal.signUp())
    const page = await pageOf(person, { objectStorage: 'untrusted', allows: [/ERR_CERT_AUTHORITY_INVALID/] })
    await open(page, path)
    await choose(page, file('a.txt'))
    await uploadOf(page, 'a.txt')
      .getByText(/does not trust its certificate/)
      .waitFor()
    expect(await uploadOf(page, 'a.txt').getByRole('link', { name: storageUrl }).getAttribute('href')).toContain(
      storageUrl,
    )
    expect(await accessFaults(page)).toEqual([])
  })

  it.each(VIEWS)('can be used by everybody in the theme %s, and fits in %s pixels', async (theme, width) => {
    const { person, path } = await bucketOf(await portal.signUp())
    const page = await pageOf(person, { theme, width })
    await open(page, '/object-storage')
    expect([await accessFaults(page), await overflow(page)]).toEqual([[], []])
    await open(page, path)
    const name = `${'a-long-name-'.repeat(8)}.txt`
    await choose(page, file(name))
    await stored(page, name)
    await rowOf(page, name).waitFor()
    expect([await accessFaults(page), await overflow(page)]).toEqual([[], []])
    await act(page, name, 'Share by a link')
    await page.getByRole('button', { name: 'Create link' }).click()
    await page.getByText(/^Valid until/).waitFor()
    expect([await accessFaults(page, '.dialog'), await overflow(page)]).toEqual([[], []])
  })
})
