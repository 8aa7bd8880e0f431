/** Single keys of pages. None of them in fields, in the console, or when they are turned off. */
import { useEffect, useRef } from 'react'
import { remember, remembered } from '../api/browser.ts'
import { now } from '../system.ts'

const SETTING = 'single-keys'

export const areKeysOn = (): boolean => remembered(SETTING) !== 'off'
export const setKeysOn = (isOn: boolean): void => remember(SETTING, isOn ? 'on' : 'off')

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable ||
    target.closest('input, textarea, select, [role="dialog"], [role="menu"], .xterm') !== null)

/** How long a letter after `g` is waited for. */
const SEQUENCE_MILLISECONDS = 1_500

/** Where `g` and a letter go. */
export interface Place {
  readonly letter: string
  readonly href: string
  readonly name: string
}

/** `g`, then a letter: goes to a place of the portal. The letter after `g` does nothing else. */
export function usePlaces(places: readonly Place[], go: (href: string) => void): void {
  const until = useRef(0)
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || !areKeysOn()) return
      const isSecond = now() < until.current
      until.current = !isSecond && event.key === 'g' ? now() + SEQUENCE_MILLISECONDS : 0
      if (!isSecond) return
      event.preventDefault()
      event.stopImmediatePropagation()
      const place = places.find(({ letter }) => letter === event.key)
      if (place !== undefined) go(place.href)
    }
    // before the keys of pages and rows
    document.addEventListener('keydown', listen, true)
    return () => document.removeEventListener('keydown', listen, true)
  })
}

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
