/** Single keys of pages. None of them in fields, in the console, or when they are turned off. */
import { useEffect } from 'react'
import { remember, remembered } from '../api/browser.ts'

const SETTING = 'single-keys'

export const areKeysOn = (): boolean => remembered(SETTING) !== 'off'
export const setKeysOn = (isOn: boolean): void => remember(SETTING, isOn ? 'on' : 'off')

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable ||
    target.closest('input, textarea, select, [role="dialog"], [role="menu"], .xterm') !== null)

/** Calls by key, while the component is there. */
export function useKeys(calls: Readonly<Record<string, () => void>>): void {
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || !areKeysOn()) return
      const run = calls[event.key]
      if (run === undefined) return
      event.preventDefault()
      run()
    }
    document.addEventListener('keydown', listen)
    return () => document.removeEventListener('keydown', listen)
  })
}
