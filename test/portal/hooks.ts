/** Runs a hook of React as a page does, effects included, without a document: what it is in shows nothing. */
import { act, createElement } from 'react'
import { createRoot } from 'react-dom/client'
import { vi } from 'vitest'

export interface Run<Result> {
  /** What it answered last. */
  readonly latest: () => Result
  /** Does something that changes its state. */
  readonly act: (change: (latest: Result) => void) => Promise<void>
  /** The page is left. */
  readonly end: () => Promise<void>
}

const nothing = (): void => undefined

/** React looks for the focus in frames. */
class EmptyFrame {}

/** As much of an element as React asks of one that stays empty. */
function emptyElement(): Element {
  const listening = { addEventListener: nothing, removeEventListener: nothing }
  const ownerDocument = { nodeType: 9, activeElement: null, ...listening }
  const element = { nodeType: 1, nodeName: 'DIV', tagName: 'DIV', lastChild: null, ownerDocument, ...listening }
  return element as unknown as Element
}

/** For tests with a portal outside of a browser, whose globals end with their file. */
export async function runHook<Result>(hook: () => Result): Promise<Run<Result>> {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true)
  vi.stubGlobal('HTMLIFrameElement', EmptyFrame)
  vi.stubGlobal('window', globalThis)
  let found: { readonly result: Result } | undefined
  const root = createRoot(emptyElement())
  const Shown = (): null => {
    found = { result: hook() }
    return null
  }
  await act(async () => root.render(createElement(Shown)))
  const latest = (): Result => {
    if (found === undefined) throw new Error('the hook did not run')
    return found.result
  }
  return {
    latest,
    act: (change) => act(async () => change(latest())),
    async end() {
      await act(async () => root.unmount())
      // the next component is one without a page again
      vi.stubGlobal('window', undefined)
    },
  }
}
