/** What a person does who uses no mouse. Each step waits for what it needs, and fails when Tab does not come there. */
import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import { accessFaults } from './access.ts'
import { dialogOf } from './browser.ts'

/** Of a page or a dialog. */
const STOPS_MAXIMUM = 150

export interface Keyboard {
  readonly page: Page
  /** Moves the focus by Tab to the element, or to something in it. */
  reach(target: Locator): Promise<void>
  /** A button or a link, by its name. */
  press(name: string | RegExp, role?: 'button' | 'link'): Promise<void>
  /** A button of the dialog that is open, which closes it. */
  answer(name: string): Promise<void>
  /** Replaces what a field holds. */
  fill(label: string, text: string): Promise<void>
  /** Opens a list and chooses by typing. */
  choose(label: string, option: string): Promise<void>
  /** A switch or a box. */
  toggle(name: string): Promise<void>
  /** A tab of the page, by arrows from the chosen one. */
  open(tab: string): Promise<void>
  /** An entry of the page's menu. */
  menu(name: string): Promise<void>
  /** Waits for a dialog, which everybody can use. */
  dialog(name: string): Promise<void>
  /** Waits until a text is there. */
  sees(text: string | RegExp): Promise<void>
}

export function keyboardOf(page: Page): Keyboard {
  /** Dialogs keep the focus: what is behind them is not reached. */
  const within = async (): Promise<Page | Locator> => {
    const dialog = dialogOf(page)
    return (await dialog.count()) > 0 ? dialog.last() : page
  }
  const reach = async (target: Locator): Promise<void> => {
    await target.waitFor()
    for (let stops = 0; stops < STOPS_MAXIMUM; stops++) {
      if (await target.evaluate((element) => element.contains(element.ownerDocument.activeElement))) return
      await page.keyboard.press('Tab')
    }
    throw new Error(`Tab does not come to ${String(target)}`)
  }
  const sees = (text: string | RegExp): Promise<void> => page.getByText(text).first().waitFor()
  return {
    page,
    reach,
    sees,
    async press(name, role = 'button') {
      const exact = typeof name === 'string'
      await reach((await within()).getByRole(role, { name, exact }).first())
      await page.keyboard.press('Enter')
    },
    async answer(name) {
      const button = page.getByRole('button', { name, exact: true })
      const dialog = dialogOf(page).filter({ has: button })
      await reach(dialog.getByRole('button', { name, exact: true }))
      await page.keyboard.press('Enter')
      await dialog.waitFor({ state: 'detached' })
    },
    async fill(label, text) {
      await reach((await within()).getByRole('textbox', { name: label }).first())
      await page.keyboard.press('Control+A')
      await page.keyboard.type(text)
    },
    async choose(label, option) {
      await reach((await within()).getByRole('button', { name: new RegExp(`\\b${label}$`) }).first())
      await page.keyboard.press('Enter')
      await page.getByRole('option', { name: option }).waitFor()
      await page.keyboard.type(option)
      await page.keyboard.press('Enter')
      await page.getByRole('option', { name: option }).waitFor({ state: 'detached' })
    },
    async toggle(name) {
      const scope = await within()
      await reach(scope.getByRole('switch', { name }).or(scope.getByRole('checkbox', { name })).first())
      await page.keyboard.press('Space')
    },
    async open(tab) {
      await reach(page.getByRole('tab', { selected: true }).first())
      const wanted = page.getByRole('tab', { name: tab, exact: true })
      for (let stops = 0; stops < STOPS_MAXIMUM; stops++) {
        if (await wanted.evaluate((element) => element === element.ownerDocument.activeElement)) return
        await page.keyboard.press('ArrowRight')
      }
      throw new Error(`arrows do not come to the tab ${tab}`)
    },
    async dialog(name) {
      await page.getByRole('dialog', { name }).or(page.getByRole('alertdialog', { name })).waitFor()
      expect(await accessFaults(page, '[role="dialog"], [role="alertdialog"]'), name).toEqual([])
    },
    async menu(name) {
      await reach(page.getByRole('main').getByRole('button', { name: 'More actions' }).first())
      await page.keyboard.press('Enter')
      await page.getByRole('menuitem', { name, exact: true }).waitFor()
      await page.keyboard.type(name)
      await page.keyboard.press('Enter')
    },
  }
}
