/** From sign-up to the first server with its console, by mouse and by keyboard. */
import { randomUUID } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { PASSWORD } from '../../e2e/customer.ts'
import { usePortal } from './kit/browser.ts'

const portal = usePortal()

const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGQw0o8v2Xg7GgJ0mB1r1Qm8M6v1k3Qv1Jb3wq0hN5aX ada@laptop'

/** The address that verifies a person, from the mail to them. */
async function linkTo(email: string): Promise<string> {
  const folder = portal.endpoints.mail_directory
  for (const file of await readdir(folder)) {
    const text = (await readFile(join(folder, file), 'utf8')).replace(/=\r?\n/g, '').replaceAll('=3D', '=')
    const [link] = /\/verify-email#\S+/.exec(text) ?? []
    if (text.includes(email) && link !== undefined) return link
  }
  throw new Error(`no mail to ${email}`)
}

/** Moves the focus by Tab until it is on an element of the role with the name. */
async function tabTo(page: Page, role: string, name: string): Promise<void> {
  const target = page.getByRole(role as 'button', { name, exact: true })
  await target.first().waitFor()
  for (let steps = 0; steps < 80; steps += 1) {
    if (await target.first().evaluate((element) => element.matches(':focus'))) return
    await page.keyboard.press('Tab')
  }
  throw new Error(`Tab does not come to ${name}`)
}

describe('somebody new', () => {
  it('comes from sign-up to the console of a server', async () => {
    const page = await portal.page()
    const email = `${randomUUID()}@example.com`
    await page.goto('/signup')
    await page.getByLabel('Your name').fill('Ada')
    await page.getByLabel('Email').fill(email)
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await page.getByRole('button', { name: 'Create account' }).click()
    await page.getByText('Look into your mail').waitFor()
    await expect.poll(() => linkTo(email).catch(() => '')).not.toBe('')
    await page.goto(await linkTo(email))
    await page.getByRole('button', { name: 'Verify my address' }).click()
    await page.getByText(`${email} is verified.`).waitFor()
    expect(new URL(page.url()).hash).toBe('')
    await page.getByRole('link', { name: 'Sign in' }).click()
    await page.getByLabel('Email').fill(email)
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    await page.getByRole('link', { name: 'Add an SSH key' }).click()
    await page.getByLabel('Name').fill('laptop')
    await page.getByLabel('Public key').fill(KEY)
    await page.getByRole('button', { name: 'Create SSH key' }).click()
    await page.getByRole('heading', { level: 1, name: 'laptop' }).waitFor()
    await page.goto('/servers/new')
    await page.getByLabel('Name').fill('first')
    await page.getByText('Tiny Linux').click()
    await page.getByText('tiny', { exact: true }).click()
    await page.getByText('per month at most').waitFor()
    await page.getByText('--hostname first').waitFor()
    await page.getByRole('button', { name: 'Create server' }).click()
    await page.getByRole('heading', { level: 1, name: 'first' }).waitFor()
    await page.getByText('started', { exact: true }).first().waitFor()
    await page.getByRole('tab', { name: 'Console' }).click()
    await page.getByRole('button', { name: 'Open the console' }).click()
    await page.getByText('Connected', { exact: true }).waitFor()
    await page.getByText('root@first').first().waitFor()
  })

  it('makes and deletes a server with the keyboard alone', async () => {
    const person = await portal.signUp()
    await person.customer.addSshKey()
    // the page asks for the server once more when it is deleted
    const page = await portal.page({ as: person, allows: [/status of 404 .*\/v1\/servers\//] })
    await page.goto('/servers')
    await tabTo(page, 'link', 'Create server')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Create server' }).waitFor()
    await page.getByRole('radio', { name: /^Tiny Linux/ }).waitFor()
    await tabTo(page, 'textbox', 'Name')
    await page.keyboard.type('keys')
    await tabTo(page, 'button', 'Create server')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'keys' }).waitFor()
    await page.getByText('started', { exact: true }).first().waitFor()
    await tabTo(page, 'button', 'More actions')
    await page.keyboard.press('Enter')
    await page.getByRole('menuitem', { name: 'Delete' }).waitFor()
    await page.keyboard.press('End')
    await page.keyboard.press('Enter')
    await page.getByRole('alertdialog', { name: 'Delete keys?' }).waitFor()
    await page.keyboard.type('keys')
    await page.keyboard.press('Enter')
    await page.getByText('This server is deleted').waitFor()
  })
})
