// Go's concurrency.Mutex, controlled by JSON lines and timed in this process, so that the times exclude the pipe.
//
//	peer ENDPOINT
//
// One command at a time. `queue` starts contenders that wait, each with its own session; `drain` releases the holder before them.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

const (
	ttl     = 600
	clients = 10
)

var (
	background = context.Background()
	connected  []*clientv3.Client
	holder     contender
	waiting    []chan contender
	free       []*concurrency.Session
	draining   bool
	served     time.Time
	lock       sync.Mutex
)

type command struct {
	ID    int
	Op    string
	Name  string
	Times int
}

type contender struct {
	session *concurrency.Session
	mutex   *concurrency.Mutex
}

func main() {
	for range clients {
		client, err := clientv3.New(clientv3.Config{Endpoints: os.Args[1:2], DialTimeout: time.Minute})
		check(err)
		connected = append(connected, client)
	}
	session := newSession(connected[0])
	operations := map[string]func(command) any{
		"cycles":             func(asked command) any { return cycles(session, asked) },
		"cycles_of_sessions": cyclesOfSessions,
		"once_each":          func(asked command) any { return onceEach(session, asked) },
		"hold": func(asked command) any {
			own := takeSession()
			holder = contender{own, concurrency.NewMutex(own, asked.Name)}
			check(holder.mutex.Lock(background))
			return nil
		},
		"queue":   queue,
		"pass_on": passOn,
		"give_back": func(command) any {
			check(holder.mutex.Unlock(background))
			free = append(free, holder.session)
			return nil
		},
		"drain": drain,
	}
	answers := json.NewEncoder(os.Stdout)
	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		var asked command
		check(json.Unmarshal(commands.Bytes(), &asked))
		operation, known := operations[asked.Op]
		if !known {
			check(fmt.Errorf("unknown operation %q", asked.Op))
		}
		check(answers.Encode(map[string]any{"id": asked.ID, "result": operation(asked)}))
	}
}

// cycles returns the milliseconds of each acquire and release.
func cycles(session *concurrency.Session, asked command) any {
	took := make([]float64, asked.Times)
	for i := range took {
		took[i] = cycle(session, asked.Name)
	}
	return took
}

// onceEach returns the milliseconds of an acquire and release of each of so many locks.
func onceEach(session *concurrency.Session, asked command) any {
	took := make([]float64, asked.Times)
	for i := range took {
		took[i] = cycle(session, fmt.Sprintf("%s-%d", asked.Name, i))
	}
	return took
}

func cycle(session *concurrency.Session, name string) float64 {
	start := time.Now()
	mutex := concurrency.NewMutex(session, name)
	check(mutex.Lock(background))
	check(mutex.Unlock(background))
	return milliseconds(time.Since(start))
}

// cyclesOfSessions returns the milliseconds of each acquire and release with a session of its own.
func cyclesOfSessions(asked command) any {
	took := make([]float64, asked.Times)
	for i := range took {
		start := time.Now()
		session := newSession(connected[0])
		mutex := concurrency.NewMutex(session, asked.Name)
		check(mutex.Lock(background))
		check(mutex.Unlock(background))
		check(session.Close())
		took[i] = milliseconds(time.Since(start))
	}
	return took
}

// queue starts one more contender; the caller checks in etcd that it waits. A mutex has one key per session.
func queue(asked command) any {
	session := takeSession()
	acquired := make(chan contender, 1)
	waiting = append(waiting, acquired)
	go func() {
		mutex := concurrency.NewMutex(session, asked.Name)
		check(mutex.Lock(background))
		lock.Lock()
		served = time.Now()
		release := draining
		lock.Unlock()
		if release {
			check(mutex.Unlock(background))
		}
		acquired <- contender{session, mutex}
	}()
	return nil
}

// passOn returns milliseconds from the call of Unlock to the Lock of the one waiter, the new holder.
func passOn(command) any {
	start := time.Now()
	released := make(chan error, 1)
	go func() { released <- holder.mutex.Unlock(background) }()
	next := <-waiting[0]
	check(<-released)
	free = append(free, holder.session)
	holder, waiting = next, nil
	return milliseconds(served.Sub(start))
}

// drain returns milliseconds from the release until the last waiter has acquired the lock.
func drain(command) any {
	setDraining(true)
	start := time.Now()
	check(holder.mutex.Unlock(background))
	free = append(free, holder.session)
	for _, acquired := range waiting {
		free = append(free, (<-acquired).session)
	}
	setDraining(false)
	waiting = nil
	return milliseconds(served.Sub(start))
}

func setDraining(now bool) {
	lock.Lock()
	defer lock.Unlock()
	draining = now
}

// takeSession returns a session without a mutex, on one of the clients in turn.
func takeSession() *concurrency.Session {
	if last := len(free) - 1; last >= 0 {
		session := free[last]
		free = free[:last]
		return session
	}
	return newSession(connected[len(waiting)%clients])
}

func newSession(client *clientv3.Client) *concurrency.Session {
	session, err := concurrency.NewSession(client, concurrency.WithTTL(ttl))
	check(err)
	return session
}

func milliseconds(took time.Duration) float64 { return float64(took) / float64(time.Millisecond) }

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
