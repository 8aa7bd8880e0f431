/** The serial console. What the terminal answers by itself never reaches the guest before a person can see it. */
import './console.css'
import { FitAddon } from '@xterm/addon-fit'
import { Terminal } from '@xterm/xterm'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import type { Server } from '../../../client/schema.ts'
import { useMay } from '../../api/session.ts'
import { pause } from '../../system.ts'
import { t } from '../../texts/index.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm, Dialog } from '../../ui/dialog.tsx'
import { Panel, Row, Soft, Toolbar } from '../../ui/layout.tsx'
import { Note, State } from '../../ui/state.tsx'
import { type ConsoleState, ConsoleSession } from './console-session.ts'
import { openUnderPolicy, themeOf } from './terminal-look.ts'

export function ConsoleTab({ item }: { readonly item: Server }): ReactNode {
  const [isOpen, setOpen] = useState(false)
  const may = useMay()
  if (isOpen) return <Console server={item} close={() => setOpen(false)} />
  return (
    <Panel>
      <Soft>{t().console.audited}</Soft>
      <Row>
        <Button
          kind="primary"
          why={may('send_server_console_input') ? undefined : t().problem.askOwner}
          onPress={() => setOpen(true)}
        >
          {t().console.open}
        </Button>
      </Row>
    </Panel>
  )
}

const CONSOLES_LOCK = 'svccloud-console'
const COUNT_MILLISECONDS = 5_000
/** A browser opens six connections to a host over HTTP/1.1: one is the stream of changes, and pages need one. */
const CONSOLES_MAXIMUM = 4

interface Question {
  readonly paste?: string
  readonly link?: string
}

/** How many consoles of this browser are open, in all its tabs: each holds one of six connections. */
function useOpenConsoles(): number {
  const [count, setCount] = useState(1)
  useEffect(() => {
    if (navigator.locks === undefined) return
    const ended = new AbortController()
    // the lock is shared, and held as long as the console is open; a tab that is closed or killed gives it back
    void navigator.locks
      .request(CONSOLES_LOCK, { mode: 'shared' }, async () => {
        while (!ended.signal.aborted) {
          const { held = [] } = await navigator.locks.query()
          if (!ended.signal.aborted) setCount(held.filter(({ name }) => name === CONSOLES_LOCK).length)
          await pause(COUNT_MILLISECONDS, ended.signal)
        }
      })
      .catch(() => undefined)
    return () => ended.abort()
  }, [])
  return count
}

function Console({ server, close }: { readonly server: Server; readonly close: () => void }): ReactNode {
  const place = useRef<HTMLDivElement>(null)
  const session = useRef<ConsoleSession>(undefined)
  const [state, setState] = useState<ConsoleState>({ is: 'connecting' })
  const [question, setQuestion] = useState<Question>({})
  const consoles = useOpenConsoles()
  useEffect(() => {
    if (place.current === null) return
    const terminal = terminalIn(place.current, (link) => setQuestion({ link }))
    const current = new ConsoleSession(server.id, terminal.terminal, setState, (paste) => setQuestion({ paste }))
    session.current = current
    return () => {
      current.end()
      terminal.dispose()
    }
  }, [server.id])
  return (
    <Panel isBare>
      <div className="console">
        <Toolbar>
          <Status state={state} />
          <Row>
            <Button kind="quiet" onPress={() => session.current?.type('\u0003')}>
              Ctrl-C
            </Button>
            <Button kind="quiet" onPress={() => session.current?.type('\u0004')}>
              Ctrl-D
            </Button>
            <Button kind="quiet" onPress={() => session.current?.fitGuest()}>
              {t().console.fit}
            </Button>
            <Button kind="quiet" onPress={() => void place.current?.requestFullscreen()}>
              {t().console.full}
            </Button>
            <Button kind="quiet" onPress={close}>
              {t().console.close}
            </Button>
          </Row>
        </Toolbar>
        {consoles >= CONSOLES_MAXIMUM ? <Note look="busy">{t().console.many(consoles)}</Note> : null}
        <div className="guest-screen" ref={place} role="group" aria-label={t().console.terminal} />
        <Soft>{t().console.leave}</Soft>
      </div>
      <Questions question={question} close={() => setQuestion({})} paste={(text) => session.current?.type(text)} />
    </Panel>
  )
}

interface QuestionsProps {
  readonly question: Question
  readonly close: () => void
  readonly paste: (text: string) => void
}

function Questions({ question: { paste, link }, close, paste: send }: QuestionsProps): ReactNode {
  if (paste !== undefined)
    return (
      <Confirm
        title={t().console.pasteTitle(paste.split(/\r\n|\r|\n/).length)}
        button={t().console.paste}
        isDanger={false}
        isBusy={false}
        onClose={close}
        onConfirm={() => {
          send(paste)
          close()
        }}
      >
        <pre className="pasted">{paste}</pre>
      </Confirm>
    )
  if (link === undefined) return null
  return (
    <Dialog title={t().console.linkTitle} onClose={close}>
      <p>{t().console.linkText}</p>
      <pre className="pasted">{link}</pre>
      <div className="dialog-end">
        <Button onPress={close}>{t().ui.cancel}</Button>
        <Button
          kind="primary"
          onPress={() => {
            window.open(link, '_blank', 'noopener,noreferrer')
            close()
          }}
        >
          {t().page.open}
        </Button>
      </div>
    </Dialog>
  )
}

function Status({ state }: { readonly state: ConsoleState }): ReactNode {
  const texts = t().console
  if (state.is === 'connected') return <State look="good">{state.isWritable ? texts.connected : texts.readOnly}</State>
  if (state.is === 'absent') return <State look="off">{texts.reasons[state.reason]}</State>
  if (state.is === 'refused') return <State look="bad">{state.detail}</State>
  return <State look="busy">{texts[state.is]}</State>
}

/** Only `https:` is followed, and only after a question. */
function terminalIn(
  place: HTMLElement,
  onLink: (url: string) => void,
): { readonly terminal: Terminal; readonly dispose: () => void } {
  const terminal = new Terminal({
    cursorBlink: true,
    fontFamily: getComputedStyle(place).fontFamily,
    fontSize: 13,
    screenReaderMode: true,
    scrollback: 5_000,
    theme: themeOf(place),
    linkHandler: {
      activate: (_event, url) => {
        if (url.startsWith('https:')) onLink(url)
      },
    },
  })
  const fit = new FitAddon()
  terminal.loadAddon(fit)
  const closePolicy = openUnderPolicy(terminal, place)
  // The guest may not read or write the clipboard.
  terminal.parser.registerOscHandler(52, () => true)
  leaveByEscapeAndTab(terminal)
  fit.fit()
  const resize = new ResizeObserver(() => fit.fit())
  resize.observe(place)
  const recolour = (): void => {
    terminal.options.theme = themeOf(place)
  }
  document.addEventListener('themechange', recolour)
  terminal.focus()
  return {
    terminal,
    dispose: () => {
      resize.disconnect()
      document.removeEventListener('themechange', recolour)
      terminal.dispose()
      closePolicy()
    },
  }
}

/** `Esc` and then `Tab` moves the focus on, as everywhere else. */
function leaveByEscapeAndTab(terminal: Terminal): void {
  let isLeaving = false
  terminal.attachCustomKeyEventHandler((event) => {
    if (event.type !== 'keydown') return true
    if (event.key === 'Tab' && isLeaving) return false
    isLeaving = event.key === 'Escape'
    return true
  })
}
