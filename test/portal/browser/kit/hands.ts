/** What a person does with a page, by whichever means. */
import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import { accessFaults } from './access.ts'
import { dialogOf } from './browser.ts'

/** Each step waits for what it needs. */
export interface Hands {
  readonly page: Page
  /** A button or a link, by its name. */
  press(name: string | RegExp, role?: 'button' | 'link'): Promise<void>
  /** A button of the dialog that is open, which closes it. */
  answer(name: string): Promise<void>
  /** Replaces what a field holds. */
  fill(label: string, text: string): Promise<void>
  /** Opens a list and chooses. */
  choose(label: string, option: string): Promise<void>
  /** Chooses one of the cards of a field. */
  take(card: string | RegExp): Promise<void>
  /** A switch or a box. */
  toggle(name: string): Promise<void>
  /** A tab of the page. */
  open(tab: string): Promise<void>
  /** An entry of the page's menu. */
  menu(name: string): Promise<void>
  /** Waits for a dialog, which everybody can use. */
  dialog(name: string): Promise<void>
  /** Waits until a text is there. */
  sees(text: string | RegExp): Promise<void>
}

/** Dialogs keep the focus: what is behind them is not reached. */
export async function frontOf(page: Page): Promise<Page | Locator> {
  const dialog = dialogOf(page)
  return (await dialog.count()) > 0 ? dialog.last() : page
}

/** The dialog with that button. */
export const dialogWith = (page: Page, name: string): Locator =>
  dialogOf(page).filter({ has: page.getByRole('button', { name, exact: true }) })

const labelOf = (control: Locator): Locator => control.first().locator('xpath=ancestor::label[1]')

/** Looks, and waits for dialogs: the same for everybody. */
export const eyesOf = (page: Page): Pick<Hands, 'dialog' | 'sees'> => ({
  sees: (text) => page.getByText(text).first().waitFor(),
  async dialog(name) {
    await page.getByRole('dialog', { name }).or(page.getByRole('alertdialog', { name })).waitFor()
    expect(await accessFaults(page, '[role="dialog"], [role="alertdialog"]'), name).toEqual([])
  },
})

/** What a person does who uses the mouse, and the keyboard for texts alone. */
export function mouseOf(page: Page): Hands {
  return {
    page,
    ...eyesOf(page),
    async press(name, role = 'button') {
      const exact = typeof name === 'string'
      await (await frontOf(page)).getByRole(role, { name, exact }).first().click()
    },
    async answer(name) {
      const dialog = dialogWith(page, name)
      await dialog.getByRole('button', { name, exact: true }).click()
      await dialog.waitFor({ state: 'detached' })
    },
    async fill(label, text) {
      await (await frontOf(page)).getByRole('textbox', { name: label }).first().fill(text)
    },
    async choose(label, option) {
      await (await frontOf(page))
        .getByRole('button', { name: new RegExp(`\\b${label}( optional)?$`) })
        .first()
        .click()
      await page.getByRole('option', { name: option }).click()
      await page.getByRole('option', { name: option }).waitFor({ state: 'detached' })
    },
    // controls are invisible: what is seen of them is their label
    async take(name) {
      await labelOf((await frontOf(page)).getByRole('radio', { name })).click()
    },
    async toggle(name) {
      const scope = await frontOf(page)
      await labelOf(scope.getByRole('switch', { name }).or(scope.getByRole('checkbox', { name }))).click()
    },
    open: (tab) => page.getByRole('tab', { name: tab, exact: true }).click(),
    async menu(name) {
      await page.getByRole('main').getByRole('button', { name: 'More actions' }).first().click()
      await page.getByRole('menuitem', { name, exact: true }).click()
    },
  }
}
